"""Runs side by side: run.py --mode compare --runs single=RUN single=RUN multi=RUN

Runs that differ in task and seed alone are one system; NAME=RUN says which system a run is of. The
first system is what the others are compared with.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.values import path


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        nargs="+",
        required=True,
        type=path,
        metavar="[NAME=]RUN",
        help="folders of finished runs",
    )
    parser.add_argument(
        "--output",
        type=path,
        default="comparison",
        metavar="DIR",
        help="folder for comparison.html, .md and .tex (default: comparison)",
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from reports.comparison_tables import as_latex, as_markdown, sections
    from reports.page import comparison_page
    from reports.store import read_run
    from reports.systems import group_runs, score_system
    from reports.tables import text_table

    named = [name_and_folder(text) for text in args.runs]
    systems = group_runs([(name, read_run(folder)) for name, folder in named])
    scored = [score_system(system) for system in systems]
    for title, table in sections(scored):
        print(f"{title}\n\n{text_table(*table)}\n")
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "comparison.md").write_text(as_markdown(scored), "utf-8")
    (folder / "comparison.tex").write_text(as_latex(scored), "utf-8")
    (folder / "comparison.html").write_text(comparison_page(scored), "utf-8")
    print(f"comparison.html, comparison.md and comparison.tex: {folder}")
    return 0


def name_and_folder(text: str) -> tuple[str | None, Path]:
    """`NAME=RUN` in parts; a folder that is there under the whole text is taken as it is."""
    name, sign, rest = text.partition("=")
    if not sign or Path(text).exists():
        return None, Path(text)
    return name, Path(rest)
