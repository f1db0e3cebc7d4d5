"""A paper's tables from its configurations: run.py --mode reproduce --table bees

Every finished run is kept as one JSON file under --results and not repeated; an unfinished one goes
on where it was.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from cli.settings_flags import path, typed
from common.settings import Count, Positive
from minbert.arithmetic import PRECISIONS
from multitask.run_settings import Limit
from studies.tables import PRECISION, TABLES, check_asked, command, notes


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", choices=TABLES, required=True, help="whose tables")
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROW",
        help="models such as M6 M13, runs such as qqp-smart of best, or how cells' names begin of "
        "scl-moo, supercontext and lacon, such as few-shot-sst2 or given-trec; "
        "default: all (of bees, all of Table 1; of supercontext, none of its large setting)",
    )
    parser.add_argument(
        "--further",
        action="store_true",
        help="of bees: also the models of the other tables and figures, and those with gradient "
        "surgery",
    )
    parser.add_argument(
        "--seeds",
        type=typed(Count),
        metavar="N",
        help="seeds of each row (default: 1 of bees, which has five; of the others as many as the "
        "study has, and more where asked, but for its sweeps)",
    )
    parser.add_argument("--data", type=path, default="sample", metavar="DIR", help="data folder")
    parser.add_argument(
        "--limit",
        type=typed(Limit),
        metavar="N",
        help="training examples of each task, or a share of them such as 0.25, of lacon of each "
        "class; not of few-shot and imbalanced rows",
    )
    parser.add_argument(
        "--dev-limit",
        type=typed(Count),
        metavar="N",
        help="dev examples per task (only with supercontext)",
    )
    parser.add_argument(
        "--vectors", type=path, metavar="FILE", help="of supercontext: GloVe's, for its BiLSTMs"
    )
    parser.add_argument(
        "--epochs",
        type=typed(Count),
        metavar="N",
        help="default: the paper's, by row; of lacon not of few-shot and imbalanced rows",
    )
    parser.add_argument("--lr", type=typed(Positive), metavar="RATE", help="default: the paper's")
    parser.add_argument("--encoder", type=path, default="minilm", help="default: minilm")
    parser.add_argument(
        "--precision", choices=PRECISIONS, help="default: bf16 of bees, fp32 of the others"
    )
    parser.add_argument(
        "--results", type=path, metavar="DIR", help="of finished cells (default: results/TABLE)"
    )
    parser.add_argument(
        "--runs", type=path, metavar="DIR", help="folders of runs (default: runs/TABLE)"
    )
    parser.add_argument(
        "--kept-only",
        action="store_true",
        help="tables of kept cells, without training",
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from multitask.config import RunConfig
    from studies.study_request import StudyRequest

    study = importlib.import_module(TABLES[args.table])
    name = args.table.replace("-", "_")
    check_asked(vars(args), study.names())
    args.precision = args.precision or PRECISION.get(args.table, "fp32")
    base = RunConfig(
        mode="single",
        tasks=(),
        data=args.data,
        limit=args.limit,
        dev_limit=args.dev_limit,
        encoder=args.encoder,
        precision=args.precision,
    )
    results = Path(args.results or Path("results") / name)
    asked = StudyRequest(
        base=base,
        results=results,
        runs=Path(args.runs or Path("runs") / name),
        rows=tuple(args.rows) if args.rows else None,
        further=args.further,
        seeds=args.seeds,
        epochs=args.epochs,
        lr=args.lr,
        vectors=args.vectors,
        kept_only=args.kept_only,
    )
    told = notes(args.table, args.encoder, args.limit, args.epochs, args.precision)
    print(study.reproduce(asked, command(vars(args)), told))
    print(f"tables: {asked.report}; figures and cells: {results}")
    return 0
