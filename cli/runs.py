"""List the runs of a folder, finished or not, with their dev scores: run.py --mode runs"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import Parser, path


def add_flags(parser: Parser) -> None:
    text = "folder to search for runs (default: runs)"
    parser.add_argument("--root", type=path, default="runs", metavar="DIR", help=text)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from common.errors import one_line
    from multitask.runs import find_runs
    from reports.run_tables import runs_table

    root = Path(args.root)
    if not root.is_dir():
        parser.error(f"--root: expected a folder with runs, found none at {root}")
    runs, problems = find_runs(root)
    print(runs_table(runs, root) if runs else f"no runs under {root}")
    for problem in problems:
        print(one_line(f"cannot be read: {problem}"))
    return 1 if problems else 0
