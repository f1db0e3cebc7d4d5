"""Compare runs: run.py --mode compare --runs single=RUN single=RUN multi=RUN

Runs that differ only in task and seed form one system. NAME=RUN puts a run into the system NAME.
Each other system is compared with the first one. A single run gets a report, too.
"""

import argparse
from pathlib import Path

from cli.flags import SEVERAL, Parser, path

FILES = ("comparison.md", "comparison.csv", "comparison.html")


def add_flags(parser: Parser) -> None:
    text = "folders of finished runs, the baseline first (required)"
    add = parser.add_argument
    add("--runs", type=path, required=True, metavar="[NAME=]RUN", help=text, **SEVERAL)
    text = "folder of the report, which replaces an earlier one (default: comparison)"
    add("--output", type=path, metavar="DIR", default="comparison", help=text)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from common.files import atomic_write_text
    from ensemble.runs import named_runs
    from multitask.runs import Run
    from reports.comparison import compare
    from reports.comparison_tables import as_csv, as_markdown, as_text, comparison_page
    from reports.figures import all_figures, save_figure
    from reports.systems import group_runs

    systems = group_runs([(name, Run(run)) for name, run in named_runs(args.runs)])
    folder = Path(args.output)
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    comparison = compare(systems)
    print(as_text(comparison), flush=True)
    drawn = []
    for name, figure in all_figures(comparison).items():
        drawn.append(folder / "figures" / f"{name}.svg")
        for file in (drawn[-1].with_suffix(".pdf"), drawn[-1]):
            save_figure(figure, file)
    page = comparison_page(comparison, drawn)
    for name, text in zip(FILES, (as_markdown(comparison), as_csv(comparison), page), strict=True):
        atomic_write_text(folder / name, text)
    print(f"\n{', '.join(FILES)}, figures: {folder}")
    return 0
