"""Compare runs: run.py --mode compare --runs single=RUN single=RUN multi=RUN

Runs that differ only in task and seed form one system; NAME=RUN assigns a run to a system. The
other systems are compared with the first one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.settings_flags import path
from common.errors import UserError

FILES = ("comparison.md", "comparison.tex", "comparison.html")


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
        "--embeddings",
        choices=("pca", "tsne", "none"),
        default="pca",
        help="projection of dev sentences on the page, coloured by label (default: pca)",
    )
    parser.add_argument(
        "--output",
        type=path,
        default="comparison",
        metavar="DIR",
        help="folder; comparison.html, .md and .tex in it are replaced (default: comparison)",
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.atomic_files import atomic_write_text
    from reports.comparison_tables import as_latex, as_markdown, comparison_page, sections
    from reports.figures import embedding_maps
    from reports.store import read_run
    from reports.systems import group_runs, score_systems
    from reports.tables import shown_table

    named = [name_and_folder(text) for text in args.runs]
    systems = group_runs([(name, read_run(folder)) for name, folder in named])
    folder = Path(args.output)
    make_folder(folder)
    scored = score_systems(systems)
    tables = sections(scored)
    for title, table in tables:
        print(f"{title}\n\n{shown_table(*table)}\n", flush=True)
    maps = [] if args.embeddings == "none" else embedding_maps(scored, args.embeddings)
    further = {"Sentences of dev by label": maps} if maps else {}
    texts = as_markdown(tables), as_latex(tables), comparison_page(scored, tables, further)
    for name, text in zip(FILES, texts, strict=True):
        atomic_write_text(folder / name, text)
    print(f"{', '.join(FILES)}: {folder}")
    return 0


def make_folder(folder: Path) -> None:
    """Create the folder before any computation; raise UserError if files cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--output: expected a folder, found {folder}: {error.strerror}") from error
    for name in FILES:
        if (folder / name).is_dir():
            raise UserError(f"{folder / name}: expected a file or nothing, found a folder")


def name_and_folder(text: str) -> tuple[str | None, Path]:
    """Split `NAME=RUN`; a text that is the path of an existing folder is not split."""
    name, sign, rest = text.partition("=")
    if not sign or Path(text).exists():
        return None, Path(text)
    return name, Path(rest)
