"""Export a run to a folder for other libraries: run.py --mode export --run RUN --output DIR

The folder has encoder, heads, settings and a model card. --mode predict and `serving.load` open it.
"""

import argparse
from pathlib import Path

from cli.flags import USE_AGAIN, Parser, path

FORMATS = ("sentence-transformers", "transformers", "onnx")


def add_flags(parser: Parser) -> None:
    add = parser.add_argument
    add("--run", type=path, required=True, metavar="DIR", help="folder of a run (required)")
    add("--output", type=path, required=True, metavar="DIR", help="output folder (required)")
    text = (
        "library of the example code in the model card; onnx also writes model.onnx (embeddings) "
        "and heads.onnx (predictions) (default: sentence-transformers)"
    )
    add("--format", choices=FORMATS, default=FORMATS[0], help=text)
    text = "export only the head of this task; in a run with branches, with its layers"
    add("--task", metavar="TASK", help=text)
    add("--overwrite", action="store_true", help="replace an existing export")
    add("--use", **USE_AGAIN)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from serving.export import export

    folder = Path(args.output)
    for line in export(Path(args.run), folder, args.format, args.overwrite, args.task):
        print(line)
    print(f"{args.format}: {args.output}, with its model card in README.md")
    return 0
