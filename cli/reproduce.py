"""Reproduce the tables of a study or a paper: run.py --mode reproduce --table bees

Every finished run is stored in a JSON file under --results and not repeated; an unfinished run is
resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.settings_flags import metavar, path, typed
from common.settings import Count, Positive, hints_of
from minbert.config import PRECISIONS, Device
from multitask.config import RunConfig
from multitask.run_settings import Limit
from studies import STUDIES, find_study


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", choices=STUDIES, required=True, help="study or paper")
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROW",
        help="cells, such as M6 M13 of bees, or prefixes of their names, such as few-shot-sst2 or "
        "given-trec (default: all; those of Table 1 with bees; all but the large setting with "
        "supercontext)",
    )
    parser.add_argument(
        "--further",
        action="store_true",
        help="include, with bees, the models of the other tables and figures and those with "
        "gradient surgery",
    )
    parser.add_argument(
        "--seeds",
        type=typed(Count),
        metavar="N",
        help="number of seeds per cell (default: 1 of five with bees; else all of the study; the "
        "papers on classification accept more, except for sweeps)",
    )
    parser.add_argument("--data", type=path, default="sample", metavar="DIR", help="data folder")
    parser.add_argument(
        "--limit",
        type=typed(Limit),
        metavar="N",
        help="training examples per task, or a share of them such as 0.25; with lacon a number per "
        "class; not for few-shot and imbalanced cells",
    )
    parser.add_argument(
        "--dev-limit",
        type=typed(Count),
        metavar="N",
        help="dev examples per task (only with supercontext)",
    )
    parser.add_argument(
        "--vectors",
        type=path,
        metavar="FILE",
        help="GloVe word vectors for the BiLSTMs of supercontext",
    )
    parser.add_argument(
        "--epochs",
        type=typed(Count),
        metavar="N",
        help="number of epochs (default: the study's); not for few-shot and imbalanced cells",
    )
    parser.add_argument(
        "--lr", type=typed(Positive), metavar="RATE", help="learning rate (default: the study's)"
    )
    for key in ("pooling", "batch_size"):
        hint = hints_of(RunConfig)[key]
        parser.add_argument(
            f"--{key.replace('_', '-')}",
            type=typed(hint),
            metavar=metavar(hint),
            help=f"{key.replace('_', ' ')} (default: the study's; only with the papers)",
        )
    parser.add_argument(
        "--device",
        type=typed(Device),
        default="auto",
        metavar="DEVICE",
        help="device: auto, cpu, cuda or cuda:N (default: auto)",
    )
    parser.add_argument("--encoder", type=path, default="minilm", help="encoder (default: minilm)")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        help="precision (default: that of the study, fp32 or bf16)",
    )
    parser.add_argument(
        "--results",
        type=path,
        metavar="DIR",
        help="folder of finished cells (default: results/TABLE)",
    )
    parser.add_argument(
        "--runs", type=path, metavar="DIR", help="folders of runs (default: runs/TABLE)"
    )
    parser.add_argument(
        "--stored-only",
        action="store_true",
        help="write the tables of stored cells without training",
    )
    parser.add_argument(
        "--tune",
        type=typed(Count),
        metavar="N",
        help="first choose the learning rate and the method's settings on dev: train N points of "
        "the grid of each requested cell (only with the papers on classification)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the runs, their training examples and steps, and estimated hours, without "
        "training",
    )
    parser.add_argument(  # former name
        "--kept-only", dest="stored_only", action="store_true", help=argparse.SUPPRESS
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from minbert.linear import choose_device
    from studies.reproduce import check_request, reproduce, requested_cells
    from studies.results import Results
    from studies.study import StudyRequest

    study = find_study(args.table)
    args.precision = args.precision or study.precision
    base = RunConfig(
        mode="single",
        tasks=(),
        data=args.data,
        limit=study.limit if args.limit is None else args.limit,
        dev_limit=args.dev_limit,
        encoder=args.encoder,
        precision=args.precision,
        device=args.device,
    )
    changes = {key: vars(args)[key] for key in ("pooling", "batch_size")}
    folder = study.folder or study.name
    request = StudyRequest(
        base=base,
        results=Path(args.results or Path("results") / folder),
        runs=Path(args.runs or Path("runs") / folder),
        rows=tuple(args.rows) if args.rows else None,
        further=args.further,
        seeds=args.seeds,
        epochs=args.epochs,
        lr=args.lr,
        vectors=args.vectors,
        changes={key: value for key, value in changes.items() if value is not None},
        stored_only=args.stored_only,
        tune=args.tune,
        command=command(vars(args)),
    )
    check_request(study, request)
    choose_device(args.device)
    if args.dry_run and args.stored_only:
        parser.error("--dry-run and --stored-only: expected at most one of them")
    if args.dry_run:
        from reports.tables import shown_table
        from studies.cost import cost_table
        from studies.reproduce import requested_searches, with_tuned_settings
        from studies.tuning import SEEDS, points_left

        request = with_tuned_settings(study, request)

        cells = requested_cells(study, study.cells(request), request)
        if request.tune:
            for search in requested_searches(study, request):
                left = points_left(search, request.tune, request.results)
                cells += [search.trial(point, SEEDS) for point in left]
        print(shown_table(*cost_table(cells, Results(request.results), args.precision)))
        return 0
    print(reproduce(study, request))
    print(f"tables: {study.page_path(request.results)}; figures and cells: {request.results}")
    return 0


def command(given: Mapping[str, Any]) -> str:
    """Return the command for reproducing the page, with placeholders for data files."""
    parts = ["python run.py --mode reproduce --table", given["table"], "--data DIR"]
    parts += ["--rows", *given["rows"]] if given["rows"] else []
    parts += ["--further"] if given["further"] else []
    shown = ("seeds", "tune", "limit", "dev_limit", "epochs", "lr", "pooling", "batch_size")
    for name in (*shown, "encoder", "precision"):
        value = given[name]
        parts += [f"--{name.replace('_', '-')} {value}"] if value is not None else []
    parts += ["--vectors FILE"] if given["vectors"] else []
    return " ".join(parts)
