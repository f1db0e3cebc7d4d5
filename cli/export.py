"""Export a run to a folder for other libraries: run.py --mode export --run RUN --output DIR

The folder has heads, configuration and model card; --mode predict and MultiTaskModel.load open it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cli.settings_flags import USE, USE_AGAIN, path
from serving.export_kinds import DEFAULT, KINDS


def add_flags(parser: argparse.ArgumentParser) -> None:
    for name, what in {"run": "folder of a run", "output": "output folder"}.items():
        about = f"{what} (required)"
        parser.add_argument(f"--{name}", type=path, required=True, metavar="DIR", help=about)
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
        help="task of a run with branches: export its head, and the encoder with its layers",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing export")
    parser.add_argument("--use", help=USE_AGAIN, **USE)


def main(args: argparse.Namespace, parser: Any) -> int:
    from serving.export import export

    run, folder = Path(args.run), Path(args.output)
    for line in export(run, folder, args.format, args.overwrite, args.task):
        print(line)
    print(f"{args.format}: {args.output}, with its model card in README.md")
    return 0
