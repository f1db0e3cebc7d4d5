"""List the runs of a folder, finished or not, with their dev scores: run.py --mode runs"""

import argparse
from pathlib import Path

from cli.flags import Parser, path


def add_flags(parser: Parser) -> None:
    text = "folder to search for runs (default: runs)"
    parser.add_argument("--root", type=path, default="runs", metavar="DIR", help=text)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from common.errors import UserError, one_line
    from minbert.checksums import is_run
    from multitask.runs import Run
    from reports.run_tables import runs_table

    root = Path(args.root)
    if not root.is_dir():
        parser.error(f"--root: there is no folder {root}")
    runs, problems = [], []
    for file in sorted(root.rglob("config.json")):
        hidden = any(one.startswith(".") for one in file.relative_to(root).parts)
        run = Run(file.parent)
        try:
            if not hidden and is_run(run.read("config.json")):
                _ = run.settings, run.metrics  # raises RunError for a damaged file
                runs.append(run)
        except UserError as error:
            problems.append(str(error))
    print(runs_table(runs, root) if runs else f"no runs under {root}")
    for problem in problems:
        print(one_line(f"cannot be read: {problem}"))
    return 1 if problems else 0
