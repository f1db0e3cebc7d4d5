"""Export a run to a folder for other libraries: run.py --mode export --run RUN --output DIR

The folder has heads, configuration and model card; --mode predict and MultiTaskModel.load open it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli.settings_flags import USE, USE_AGAIN, path
from common.argument_types import typed
from common.settings import Count, Seed
from serving.export_kinds import DEFAULT, KINDS

STATIC = ("width", "texts", "column", "seed")  # settings of this format


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=path, required=True, metavar="RUN", help="folder of a run")
    parser.add_argument("--output", type=path, required=True, metavar="DIR", help="output folder")
    parser.add_argument(
        "--format",
        choices=tuple(KINDS),
        default=DEFAULT,
        help="; ".join(f"{name}: {kind.help}" for name, kind in KINDS.items())
        + f" (default: {DEFAULT})",
    )
    parser.add_argument(
        "--task",
        metavar="TASK",
        help="task of a run with adapters: export its head, with its adapter merged into the "
        "encoder",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing export")
    parser.add_argument("--use", help=USE_AGAIN, **USE)
    static = parser.add_argument_group("format static")
    static.add_argument(
        "--width",
        type=typed(Count),
        metavar="N",
        help="width of the vectors (default: 256, or the encoder's if it is smaller)",
    )
    static.add_argument(
        "--texts",
        type=path,
        metavar="FILE",
        help="texts that the table is fitted to, one per line, or a .csv, .tsv, .jsonl or .parquet "
        "file with --column (default: the training texts of the run)",
    )
    static.add_argument("--column", metavar="NAME", help="column or field that holds the texts")
    static.add_argument(
        "--seed",
        type=typed(Seed),
        metavar="N",
        help="random seed of the held-out texts and the order of the others (default: the run's)",
    )


def main(args: argparse.Namespace, parser: Any) -> int:
    given = [name for name in STATIC if getattr(args, name) is not None]
    if given and args.format != "static":
        parser.error(f"--{given[0]}: expected --format static, found {args.format}")
    if args.column is not None and args.texts is None:
        parser.error("--column: expected --texts FILE, found none")
    from serving.export import export
    from serving.rows import read_sentence_list
    from serving.static_export import StaticSettings

    run, folder = Path(args.run), Path(args.output)
    texts = None if args.texts is None else read_sentence_list(Path(args.texts), args.column)
    static = StaticSettings(args.width, texts, args.seed)
    notices = export(
        run, folder, args.format, args.overwrite, parser.outside, task=args.task, static=static
    )
    for line in notices:
        print(line)
    print(f"{args.format}: {args.output}, with its model card in README.md")
    return 0
