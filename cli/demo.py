"""Serve a local page for trying the heads of a run: run.py --mode demo --run RUN

With --input, the page also searches the sentences of a file. The server listens on this machine
only, unless --host is given; then the page offers no texts of the dev data as examples. It answers
one request at a time, on at most 64 connections; a request that is not complete after 10 seconds is
refused.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cli.settings_flags import USE, USE_AGAIN, Flags, path, typed
from multitask.config import RunConfig
from multitask.run_settings import MACHINE

Port = Annotated[int, Meta(ge=0, le=65535)]


def add_flags(parser: Any) -> None:
    parser.add_argument(
        "--run", type=path, required=True, metavar="RUN", help="folder of a run or of an export"
    )
    parser.add_argument(
        "--input", type=path, metavar="FILE", help="file of sentences to search, one per line"
    )
    parser.add_argument("--column", metavar="NAME", help="column of a .csv, .tsv or .jsonl --input")
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--port", type=typed(Port), default=8000, metavar="N", help="port (default: 8000)"
    )
    parser.flags = flags = Flags(parser)
    flags.add_config(MACHINE)
    flags.add("use", "training", USE_AGAIN, **USE)


def main(args: argparse.Namespace, parser: Any) -> int:
    if ":" in args.host:
        parser.error(f"--host: expected a name or an IPv4 address, found {args.host}")
    if args.column and not args.input:
        parser.error("--column: expected --input FILE, found none")
    from multitask.run_folder import RunFolder
    from serving.demo import Corpus, Run, make_app
    from serving.mining import embeddings_of, read_sentence_list
    from serving.model import MultiTaskModel
    from serving.server import server_of

    machine = RunConfig(**parser.flags.given(args, ()))
    corpus = None
    sentences = read_sentence_list(Path(args.input), args.column) if args.input else []
    model = MultiTaskModel.load(args.run, machine.device, machine.linear, parser.outside)
    if sentences:
        RunFolder(Path(args.run)).check_embeds_texts()
        if names := ", ".join(model.model.adapters):
            print(f"search: embeddings of the shared encoder, without the adapters of {names}")
        embeddings = embeddings_of(sentences, model.model.bi_encoder)
        corpus = Corpus(Path(args.input).name, sentences, embeddings)
    run = Run(Path(args.run).resolve().name, RunFolder(Path(args.run)).read_metrics() or {})
    hosts = ("127.0.0.1", "localhost", args.host) if args.host != "0.0.0.0" else ("*",)
    # Bound here, so that errors are reported in one line and the port is known.
    with socket.create_server((args.host, args.port)) as listening:
        port = listening.getsockname()[1]
        local = listening.getsockname()[0].startswith("127.")
        print(f"open http://{args.host}:{port}/ in a browser; press Ctrl-C to stop", flush=True)
        if not local:
            print("others can open it: its examples are built-in texts, none of dev", flush=True)
        app = make_app(model, corpus, hosts, run=run, dev_examples=local)
        server_of(app).run(sockets=[listening])
    return 0
