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
COMPARISON = "comparison"  # default folder


def add_flags(parser: argparse.ArgumentParser) -> None:
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
        "--embeddings",
        choices=("pca", "tsne", "none"),
        help="projection of dev sentences on the page, coloured by label (default: pca)",
    )
    parser.add_argument(
        "--output",
        type=path,
        metavar="DIR",
        help="folder; comparison.html, .md, .tex and figures in it are replaced (default: "
        f"{COMPARISON})",
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.files import atomic_write_text
    from ensemble.runs import name_and_path
    from multitask.runs import Run
    from reports.comparison import compare
    from reports.comparison_figures import all_figures
    from reports.comparison_page import comparison_page
    from reports.comparison_tables import as_latex, as_markdown, as_text
    from reports.embedding_maps import embedding_maps
    from reports.figures import FIGURES, save_drawings
    from reports.scored_systems import score_systems
    from reports.systems import group_runs

    named = [name_and_path(text) for text in args.runs]
    systems = group_runs([(name, Run(folder)) for name, folder in named])
    folder = Path(args.output or COMPARISON)
    make_folder(folder)
    comparison = compare(score_systems(systems))
    print(as_text(comparison), flush=True)
    drawings = dict(all_figures(comparison))
    method = args.embeddings or "pca"
    if method != "none" and (maps := embedding_maps(comparison.systems, method)):
        drawings["Sentences of dev by label"] = maps
    page = comparison_page(comparison, drawings)
    texts = as_markdown(comparison), as_latex(comparison), page
    for name, text in zip(FILES, texts, strict=True):
        atomic_write_text(folder / name, text)
    save_drawings(drawings, folder)
    print(f"\n{', '.join(FILES)}, {FIGURES}: {folder}")
    return 0


def make_folder(folder: Path) -> None:
    """Create the folder before any computation; raise UserError if files cannot be written."""
    from reports.figures import FIGURES

    if (folder / "config.json").exists():
        line = "expected a folder for a report, found one with a config.json"
        raise UserError(f"{folder}: {line}; choose another --output")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        line = f"{folder}: expected a folder that can be written ({error.strerror})"
        raise UserError(f"{line}; choose another --output") from error
    for name in FILES:
        if (folder / name).is_dir():
            raise UserError(f"{folder / name}: expected a file or nothing, found a folder")
    there = [name for name in FILES if (folder / name).exists()]
    if there and len(there) < len(FILES):
        expected = "expected no such file, or all files of a report, which is replaced"
        raise UserError(f"{folder / there[0]}: {expected}; choose another --output")
    if (folder / FIGURES).exists() and not (folder / FIGURES).is_dir():
        raise UserError(f"{folder / FIGURES}: expected a folder or nothing, found a file")
