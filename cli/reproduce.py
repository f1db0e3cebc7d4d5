"""Reproduce the tables of a study or a paper: run.py --mode reproduce --table bees

Every finished run is stored in a JSON file under --results and not repeated; an unfinished run is
resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from cli.settings_flags import flag, metavar, path, typed
from common.settings import Count, Positive, hints_of
from minbert.config import PRECISIONS, Device
from multitask.settings.config import RunConfig
from multitask.settings.run_settings import Limit
from studies import STUDIES
from tasks import SAMPLE

CHANGES = {  # settings of a study's runs that have a flag, and the tables that accept it
    "pooling": "lacon, scl-moo and supercontext",
    "batch_size": "bees, lacon and scl-moo",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", choices=STUDIES, required=True, help="study or paper (required)")
    add_cell_flags(parser)
    add_setting_flags(parser)
    add_result_flags(parser)


def add_cell_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose cells of a study, and their seeds."""
    parser.add_argument(
        "--rows",
        nargs="+",
        action="extend",
        metavar="ROW",
        help="cells, such as M6 M13 of bees, or beginnings of several names, such as few-shot-sst2 "
        "or given-trec (default: all; those of Table 1 with bees; all but the large setting with "
        "supercontext)",
    )
    parser.add_argument(
        "--further",
        action="store_true",
        help="include, with bees, the models of the other tables and figures, those with gradient "
        "surgery, and those beyond the paper, such as M13-mean and M7-scale1",
    )
    parser.add_argument(
        "--seeds",
        type=typed(Count),
        metavar="N",
        help="number of seeds per cell (default: 1 of five with bees; else all of the study); "
        "lacon, scl-moo and supercontext accept more, except for sweeps",
    )


def add_setting_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of settings that replace those of the study in every run."""

    def add(key: str, hint: Any, name: str, text: str, default: str | None = None) -> None:
        parser.add_argument(flag(key), type=typed(hint), metavar=name, help=text, default=default)

    data = "folder of the data; sample is the bundled data (default: %(default)s)"
    parser.add_argument("--data", type=path, default=SAMPLE, metavar="DIR", help=data)
    add(
        "limit",
        Limit,
        "N",
        "training examples per task, or a share of them such as 0.25; with lacon a number per "
        "class; not for few-shot and imbalanced cells",
    )
    add("dev_limit", Count, "N", "dev examples per task (only with supercontext)")
    vectors = "GloVe word vectors for the BiLSTMs of supercontext"
    parser.add_argument("--vectors", type=path, metavar="FILE", help=vectors)
    add(
        "epochs",
        Count,
        "N",
        "number of epochs (default: the study's); not for few-shot and imbalanced cells",
    )
    add(
        "lr",
        Positive,
        "RATE",
        "learning rate (default: the study's; only with the papers and sharing)",
    )
    for key, tables in CHANGES.items():
        hint, name = hints_of(RunConfig)[key], key.replace("_", " ")
        add(key, hint, metavar(hint), f"{name} (default: the study's; only with {tables})")
    devices = "device: auto, cpu, cuda or cuda:N (default: auto)"
    add("device", Device, "DEVICE", devices, default="auto")
    parser.add_argument(
        "--encoder", type=path, default=RunConfig.encoder, help="encoder (default: %(default)s)"
    )
    precision = "precision (default: that of the study, fp32 or bf16)"
    parser.add_argument("--precision", choices=PRECISIONS, help=precision)


def add_result_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of stored results, and of what is done beside or in place of training."""
    results = "folder of finished cells (default: results/TABLE)"
    parser.add_argument("--results", type=path, metavar="DIR", help=results)
    runs = "folders of runs (default: runs/TABLE)"
    parser.add_argument("--runs", type=path, metavar="DIR", help=runs)
    stored = "write the tables of stored cells without training or tuning"
    parser.add_argument("--stored-only", action="store_true", help=stored)
    parser.add_argument(
        "--tune",
        type=typed(Count),
        metavar="N",
        help="first choose the learning rate and the method's settings on dev: train N points of "
        "the grid of each requested cell, and rates beyond it while the best is at an end (only "
        "with lacon, scl-moo and supercontext)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print the runs, their training examples and steps, without training",
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from minbert.device import choose_device
    from reports.tables import text_table
    from studies.cost import cost_table
    from studies.reproduce import check_request, planned_cells, reproduce
    from studies.results import Results
    from studies.study import find_study

    study = find_study(args.table)
    request = request_of(args, study)
    check_request(study, request)
    choose_device(args.device)
    if args.dry_run and args.stored_only:
        parser.error("--dry-run and --stored-only: expected at most one of them")
    if args.dry_run:
        cells = planned_cells(study, request)
        results = Results(request.results)
        print(text_table(*cost_table(cells, results, request.runs)))
        return 0
    print(reproduce(study, request))
    print(f"tables: {study.page_path(request.results)}; figures and cells: {request.results}")
    return 0


def request_of(args: argparse.Namespace, study: Any) -> Any:
    """Return the `StudyRequest` that the flags make of a `Study`."""
    from studies.study import StudyRequest

    precision = args.precision or study.precision
    folder = study.folder or study.name
    changes = {key: value for key in CHANGES if (value := getattr(args, key)) is not None}
    return StudyRequest(
        base=RunConfig(
            mode="single",
            tasks=(),
            data=args.data,
            limit=args.limit,
            dev_limit=args.dev_limit,
            encoder=args.encoder,
            precision=precision,
            device=args.device,
        ),
        results=Path(args.results or Path("results") / folder),
        runs=Path(args.runs or Path("runs") / folder),
        rows=tuple(args.rows) if args.rows else None,
        further=args.further,
        seeds=args.seeds,
        epochs=args.epochs,
        lr=args.lr,
        vectors=args.vectors,
        changes=changes,
        stored_only=args.stored_only,
        tune=args.tune,
        command=command({**vars(args), "precision": precision}, folder),
    )


def command(given: Mapping[str, Any], folder: str) -> str:
    """Return the command for reproducing the page, with placeholders for data files.

    The results folder is named unless it is results/`folder`, the study's own.
    """
    parts = ["python run.py --mode reproduce --table", given["table"], "--data DIR"]
    parts += ["--rows", *given["rows"]] if given["rows"] else []
    parts += ["--further"] if given["further"] else []
    shown = ("seeds", "tune", "limit", "dev_limit", "epochs", "lr", *CHANGES)
    for name in (*shown, "encoder", "precision"):
        value = given[name]
        parts += [f"{flag(name)} {quote(str(value))}"] if value is not None else []
    parts += ["--vectors FILE"] if given["vectors"] else []
    results = Path("results") / folder if given["results"] is None else Path(given["results"])
    parts += [f"--results {quote(str(results))}"] if results != Path("results") / folder else []
    return " ".join(parts)
