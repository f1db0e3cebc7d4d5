"""Export a run to a folder for other libraries: run.py --mode export --run RUN --output DIR

The folder has heads, configuration and model card; --mode predict and MultiTaskModel.load open it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import USE, USE_AGAIN, Parser, path

FORMATS = {
    "sentence-transformers": "SentenceTransformer(DIR) returns the same embeddings",
    "transformers": "AutoModel and AutoTokenizer open it",
    "onnx": "also model.onnx, from ids and mask to embeddings, and heads.onnx, to scores",
}


def add_flags(parser: Parser) -> None:
    for name, what in {"run": "folder of a run", "output": "output folder"}.items():
        about = f"{what} (required)"
        parser.add_argument(f"--{name}", type=path, required=True, metavar="DIR", help=about)
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="sentence-transformers",
        help="; ".join(f"{name}: {what}" for name, what in FORMATS.items())
        + " (default: sentence-transformers)",
    )
    parser.add_argument(
        "--task",
        metavar="TASK",
        help="export only this head, and the encoder with its layers in a run with branches",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing export")
    parser.add_argument("--use", help=USE_AGAIN, **USE)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from serving.export import export

    run, folder = Path(args.run), Path(args.output)
    for line in export(run, folder, args.format, args.overwrite, args.task):
        print(line)
    print(f"{args.format}: {args.output}, with its model card in README.md")
    return 0
