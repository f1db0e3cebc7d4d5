"""Serve the heads of a run, as a page and a JSON interface: run.py --mode serve --run RUN

The server listens on this machine only, unless --host is given. Requests of several clients share
passes of the encoder. A request that is not complete after 10 seconds is refused.
"""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from cli.flags import Parser, add_run, typed
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
    from serving.server import make_app, server_of

    machine = RunConfig(**parser.given(args))
    model = load(args.run, machine.device)
    precision = model.model.bi_encoder.choose_precision(machine.precision)
    name, metrics = Path(args.run).resolve().name, Run(Path(args.run)).metrics
    hosts = ("127.0.0.1", "localhost", args.host) if args.host != "0.0.0.0" else ("*",)
    app = make_app(model, name, metrics, hosts, precision.precision)
    # Bound here, so that errors are reported in one line and the port is known.
    with socket.create_server((args.host, args.port)) as listening:
        # Without this, the second packet of an answer waits for the client's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = listening.getsockname()[1]
        if machine.precision == "auto":
            print(precision, file=sys.stderr, flush=True)
        print(f"open http://{args.host}:{port}/ in a browser; press Ctrl-C to stop", flush=True)
        server_of(app).run(sockets=[listening])
    return 0
