"""Serve the predictions of a run, as a web page and as JSON: run.py --mode serve --run RUN

The server listens on this machine only, unless --host is given. It refuses a request that is not
complete after 10 seconds.
"""

import argparse
import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from cli.flags import Parser, add_run, typed
from common.errors import UserError
from common.settings import Name
from multitask.settings.config import RunConfig

Port = Annotated[int, Meta(ge=0, le=65535)]


def add_flags(parser: Parser) -> None:
    add_run(parser)
    add, address, text = parser.add_argument, "127.0.0.1", "address (default: %(default)s)"
    add("--host", type=typed(Name), default=address, metavar="ADDRESS", help=text)
    add("--port", type=typed(Port), default=8000, metavar="N", help="port (default: %(default)s)")
    parser.add_settings(("precision", "device"))


def main(args: argparse.Namespace, parser: Parser) -> int:
    from multitask.runs import Run
    from serving.model import load
    from serving.server import Server, Service

    machine = RunConfig(**parser.given(args))
    model = load(args.run, machine.device)
    precision = model.model.bi_encoder.choose_precision(machine.precision)
    name, metrics = Path(args.run).resolve().name, Run(Path(args.run)).metrics
    hosts = ("127.0.0.1", "localhost", args.host) if args.host != "0.0.0.0" else ("*",)
    service = Service(model, name, metrics, precision.precision)
    try:
        opened = Server((args.host, args.port), service, hosts)
    except OSError as error:
        raise UserError(f"port {args.port}: {error.strerror}; choose another --port") from error
    with opened as server:
        if machine.precision == "auto":
            print(precision, file=sys.stderr, flush=True)
        address = f"http://{args.host}:{server.server_address[1]}/"
        print(f"open {address} in a browser; press Ctrl-C to stop", flush=True)
        server.serve_forever()
    return 0
