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
FIGURES = "figures"  # folder beside them


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        nargs="+",
        required=True,
        type=path,
        metavar="[NAME=]RUN",
        help="folders of finished runs; the first one belongs to the baseline, with which the "
        "other systems are compared",
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
        help="folder; comparison.html, .md, .tex and figures in it are replaced "
        "(default: comparison)",
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.atomic_files import atomic_write_text
    from reports.comparison import compare
    from reports.comparison_figures import all_figures
    from reports.comparison_page import comparison_page
    from reports.comparison_tables import as_latex, as_markdown, as_text
    from reports.embedding_maps import embedding_maps
    from reports.store import read_run
    from reports.systems import group_runs, score_systems

    named = [name_and_folder(text) for text in args.runs]
    systems = group_runs([(name, read_run(folder)) for name, folder in named])
    folder = Path(args.output)
    make_folder(folder)
    comparison = compare(score_systems(systems))
    print(as_text(comparison), flush=True)
    drawings = dict(all_figures(comparison))
    if args.embeddings != "none" and (maps := embedding_maps(comparison.systems, args.embeddings)):
        drawings["Sentences of dev by label"] = maps
    page = comparison_page(comparison, drawings, FIGURES)
    texts = as_markdown(comparison), as_latex(comparison), page
    for name, text in zip(FILES, texts, strict=True):
        atomic_write_text(folder / name, text)
    (folder / FIGURES).mkdir(exist_ok=True)
    for one in (one for several in drawings.values() for one in several):
        one.save(folder / FIGURES)
    print(f"\n{', '.join(FILES)}, {FIGURES}: {folder}")
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
    if (folder / FIGURES).exists() and not (folder / FIGURES).is_dir():
        raise UserError(f"{folder / FIGURES}: expected a folder or nothing, found a file")


def name_and_folder(text: str) -> tuple[str | None, Path]:
    """Split `NAME=RUN`; a text that is the path of an existing folder is not split."""
    name, sign, rest = text.partition("=")
    if not sign or Path(text).exists():
        return None, Path(text)
    return name, Path(rest)
