"""Reproduce the tables of a paper: run.py --mode reproduce --table bees --data DIR

A run with stored figures is not repeated, and an unfinished one is resumed. You may start the same
command several times side by side.
"""

import argparse
from pathlib import Path

from cli.flags import SEVERAL, USE, Parser, path, typed
from common.errors import SettingsError, UserError, counted
from common.settings import Count, Positive
from minbert.config import PRECISIONS
from multitask.settings.run_settings import Limit
from papers import PAGES, PAPERS
from papers.page import command_of, write_page
from papers.paper import Paper, find_paper
from papers.store import Store
from tasks import SAMPLE


def add_flags(parser: Parser) -> None:
    add = parser.add_argument
    add("--table", choices=PAGES, required=True, help="paper (required)")
    text = "rows to run, such as M4 M7 of bees, with their tuning (default: all)"
    add("--rows", metavar="ROW", help=text, **SEVERAL)
    add("--seeds", type=typed(Count), metavar="N", help="seeds of a row (default: all)")
    text = "files with combiners of yours, which become rows of --table combiners"
    add("--use", **USE, help=text)
    add("--page-only", action="store_true", help="only write the page, from stored figures")
    parser.add_settings(("data", "device"))
    add("--encoder", type=path, help="encoder (default: as in the rows, minilm)")
    limit = "training examples of each task, or a share of them (default: as in the rows)"
    add("--limit", type=typed(Limit), metavar="N", help=limit)
    add("--epochs", type=typed(Count), metavar="N", help="epochs (default: as in the rows)")
    add("--lr", type=typed(Positive), metavar="RATE", help="learning rate (default: best on dev)")
    add("--precision", choices=PRECISIONS, help="precision (default: as in the rows, bf16)")
    results = "folder of figures, settings and page (default: results)"
    add("--results", type=path, default="results", metavar="DIR", help=results)
    add("--runs", type=path, metavar="DIR", help="folder of the runs (default: runs/TABLE)")


def main(args: argparse.Namespace, parser: Parser) -> int:
    results, failed = Path(args.results), run(args)
    if not args.page_only:
        from papers.figures import draw

        draw(args.table, results)
    print(f"\n{write_page(args.table, results)}")
    if failed:
        raise UserError(f"{counted(len(failed), 'run')} failed; the first error: {failed[0]}")
    return 0


def run(args: argparse.Namespace) -> list[str]:
    """Run what is missing; return the errors of failed runs."""
    paper = find_paper(args.table) if args.table in PAPERS else Paper(args.table, {}, ())
    paper = paper.with_methods(args.use) if args.use else paper
    for row in args.rows or ():
        if row not in paper.rows:
            known = ", ".join(paper.rows) or f"none in {args.table}, a page of python -m benchmarks"
            raise SettingsError(f"rows: choose from {known}; found {row}")
    if args.page_only or not paper.rows:
        return []
    names = ("encoder", "limit", "epochs", "precision", "lr")
    changes = {key: one for key in names if (one := getattr(args, key)) is not None}
    paper = paper.changed(changes)

    from papers.runs import Place, cells, run_cells

    command = command_of(args.table, ({"data": "DIR"} if args.data else {}) | changes)
    runs, store = Path(args.runs or f"runs/{args.table}"), Store(Path(args.results), args.table)
    place = Place(args.data or SAMPLE, runs, store, args.device or "auto", command)
    return run_cells(paper, cells(paper, args.rows, args.seeds), place)
