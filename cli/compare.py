"""Compare runs: run.py --mode compare --runs single=RUN single=RUN multi=RUN

Runs that differ only in task and seed form one system; NAME=RUN assigns a run to a system. The
other systems are compared with the first one. One run alone has a page, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import Parser, path
from common.errors import UserError

FILES = ("comparison.md", "comparison.csv", "comparison.html")
COMPARISON = "comparison"  # default folder


def add_flags(parser: Parser) -> None:
    parser.add_argument(
        "--runs",
        nargs="+",
        action="extend",
        type=path,
        required=True,
        metavar="[NAME=]RUN",
        help="folders of finished runs; the first one belongs to the baseline, with which the "
        "other systems are compared (required)",
    )
    parser.add_argument(
        "--output",
        type=path,
        metavar="DIR",
        default=COMPARISON,
        help="folder; comparison.html, .md, .csv and figures in it are replaced (default: "
        "%(default)s)",
    )


def main(args: argparse.Namespace, parser: Parser) -> int:
    from common.files import atomic_write_text
    from ensemble.runs import name_and_path
    from multitask.runs import Run
    from reports.comparison import compare
    from reports.comparison_page import comparison_page
    from reports.comparison_tables import as_csv, as_markdown, as_text
    from reports.drawings import all_drawings
    from reports.figures import FIGURES
    from reports.systems import group_runs

    named = [name_and_path(text) for text in args.runs]
    systems = group_runs([(name, Run(folder)) for name, folder in named])
    folder = Path(args.output)
    check_folder(folder)
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    comparison = compare(systems)
    print(as_text(comparison), flush=True)
    drawings = all_drawings(comparison)
    page = comparison_page(comparison, drawings)
    texts = as_markdown(comparison), as_csv(comparison), page
    for name, text in zip(FILES, texts, strict=True):
        atomic_write_text(folder / name, text)
    for one in (one for several in drawings.values() for one in several):
        one.save(folder)
    print(f"\n{', '.join(FILES)}, {FIGURES}: {folder}")
    return 0


def check_folder(folder: Path) -> None:
    """Raise UserError for the folder of a run, or one with a file that is no report of ours."""
    if (folder / "config.json").exists():
        line = "expected a folder for a report, found one with a config.json"
        raise UserError(f"{folder}: {line}; choose another --output")
    there = [name for name in FILES if (folder / name).exists()]
    if there and len(there) < len(FILES):
        expected = "expected no such file, or all files of a report, which is replaced"
        raise UserError(f"{folder / there[0]}: {expected}; choose another --output")
