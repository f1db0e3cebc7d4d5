"""Export a run to a folder for other libraries: run.py --mode export --run RUN --output DIR

The folder has heads, configuration and model card; --mode predict and MultiTaskModel.load open it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli.settings_flags import USE, USE_AGAIN, path

FORMATS = {
    "sentence-transformers": "SentenceTransformer(DIR) returns the same embeddings",
    "transformers": "AutoModel and AutoTokenizer open it",
    "onnx": "also model.onnx, from ids and mask to embeddings, and heads.onnx, to scores",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=path, required=True, metavar="RUN", help="folder of a run")
    parser.add_argument("--output", type=path, required=True, metavar="DIR", help="output folder")
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="sentence-transformers",
        help="; ".join(f"{name}: {text}" for name, text in FORMATS.items())
        + " (default: sentence-transformers)",
    )
    parser.add_argument(
        "--task",
        metavar="TASK",
        help="task of a run with adapters: export its head, with its adapter merged into the "
        "encoder",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing export")
    parser.add_argument("--use", help=USE_AGAIN, **USE)


def main(args: argparse.Namespace, parser: Any) -> int:
    from serving.export import export

    run, folder = Path(args.run), Path(args.output)
    notices = export(run, folder, args.format, args.overwrite, parser.outside, task=args.task)
    for line in notices:
        print(line)
    print(f"{args.format}: {args.output}, with its model card in README.md")
    return 0
