"""Serve the heads of a run, as a page and a JSON interface: run.py --mode serve --run RUN

The server listens on this machine only, unless --host is given; then the page offers no texts of
the dev data as examples. Requests of several clients share passes of the encoder. There are at most
64 connections; a request that is not complete after 10 seconds is refused.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cli.settings_flags import USE, USE_AGAIN, Flags, path, typed
from common.settings import Count
from multitask.settings.config import RunConfig

Port = Annotated[int, Meta(ge=0, le=65535)]
Milliseconds = Annotated[int, Meta(ge=0, le=1000)]


def add_flags(parser: Any) -> None:
    parser.add_argument(
        "--run",
        type=path,
        required=True,
        metavar="RUN",
        help="folder of a run or of an export (required)",
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=typed(Port), default=8000, metavar="N", help="port (default: 8000)"
    )
    parser.add_argument(
        "--batch-tokens",
        type=typed(Count),
        default=8192,
        metavar="N",
        help="join waiting requests of up to N tokens into one pass (default: 8192); 1: none",
    )
    parser.add_argument(
        "--batch-wait",
        type=typed(Milliseconds),
        default=2,
        metavar="MS",
        help="milliseconds that the first request waits for others to join it (default: 2)",
    )
    parser.add_argument(
        "--queue",
        type=typed(Count),
        default=64,
        metavar="N",
        help="requests that wait or run at most; further ones get status 503 (default: 64)",
    )
    parser.flags = flags = Flags(parser)
    flags.add_settings(("precision", "device"))
    flags.add("use", "training", USE_AGAIN, **USE)


def main(args: argparse.Namespace, parser: Any) -> int:
    if not args.host:
        parser.error("--host: expected a name or an address such as 127.0.0.1, found an empty text")
    if ":" in args.host:
        parser.error(f"--host: expected a name or an IPv4 address, found {args.host}")
    from multitask.run_folder import RunFolder
    from serving.answers import ServedRun
    from serving.model import MultiTaskModel
    from serving.run_encoder import report_precision
    from serving.server import server_of
    from serving.service import Load, make_app

    machine = RunConfig(**parser.flags.given(args))
    model = MultiTaskModel.load(args.run, machine.device)
    choice = model.model.bi_encoder.choose_precision(machine.precision)
    precision = choice.precision
    for task in (None, *model.model.branches):  # errors before the first request
        model.encoder(precision, task)
    run = ServedRun(Path(args.run).resolve().name, RunFolder(Path(args.run)).metrics() or {})
    hosts = ("127.0.0.1", "localhost", args.host) if args.host != "0.0.0.0" else ("*",)
    # Bound here, so that errors are reported in one line and the port is known.
    with socket.create_server((args.host, args.port)) as listening:
        port = listening.getsockname()[1]
        local = listening.getsockname()[0].startswith("127.")
        report_precision(machine.precision, choice)
        print(f"open http://{args.host}:{port}/ in a browser; press Ctrl-C to stop", flush=True)
        if not local:
            print("others can open it: its examples are built-in texts, none of dev", flush=True)
        load = Load(args.batch_tokens, args.batch_wait / 1000, args.queue)
        app = make_app(model, hosts, run, local, load, precision)
        server_of(app).run(sockets=[listening])
    return 0
