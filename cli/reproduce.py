"""A paper's tables from its configurations: run.py --mode reproduce --table bees

Every finished run is kept as one JSON file under --results and not repeated; an unfinished one goes
on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import COUNT, PRECISIONS
from cli.values import number, path

TABLES = ("bees",)


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", choices=TABLES, required=True, help="whose tables")
    parser.add_argument(
        "--rows",
        nargs="+",
        metavar="ROW",
        help="models such as M6 M13; default: all of Table 1",
    )
    parser.add_argument(
        "--further",
        action="store_true",
        help="also the models of the other tables and figures, and those with gradient surgery",
    )
    parser.add_argument(
        "--seeds",
        type=number(int, 1, 5),
        default=1,
        metavar="N",
        help="seeds of each row (default: 1)",
    )
    parser.add_argument("--data", type=path, default="sample", metavar="DIR", help="CS224N files")
    parser.add_argument("--limit", type=COUNT, metavar="N", help="training examples of a task")
    parser.add_argument("--epochs", type=COUNT, metavar="N", help="default: the paper's, by row")
    parser.add_argument("--encoder", type=path, default="minilm", help="default: minilm")
    parser.add_argument("--precision", choices=PRECISIONS, default="bf16", help="default: bf16")
    parser.add_argument("--results", type=path, default="results/bees", metavar="DIR")
    parser.add_argument("--runs", type=path, default="runs/bees", metavar="DIR", help="run folders")


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from multitask.config import RunConfig
    from studies.bees import EVERY
    from studies.reproduce_bees import Reproduction, names_of, reproduce

    for row in args.rows or ():
        if row not in EVERY:
            parser.error(f"--rows: expected some of {', '.join(EVERY)}, found {row}")
    if args.rows and args.further:
        parser.error("--rows and --further: expected one of them")
    base = RunConfig(
        mode="single",
        tasks=(),
        data=args.data,
        limit=args.limit,
        encoder=args.encoder,
        precision=args.precision,
    )
    rows = names_of(args.rows, args.further)
    results, runs = Path(args.results), Path(args.runs)
    asked = Reproduction(rows, args.seeds, base, args.epochs, results, runs)
    print(reproduce(asked, command_of(args), notes_of(args)))
    print(f"tables: {results.with_suffix('.md')}; figures and cells: {results}")
    return 0


def command_of(args: argparse.Namespace) -> str:
    """The command as a reader would repeat it, with data of his own."""
    parts = ["python run.py --mode reproduce --table", args.table, "--data DIR"]
    parts += ["--rows", *args.rows] if args.rows else []
    parts += ["--further"] if args.further else []
    for name in ("seeds", "limit", "epochs", "encoder", "precision"):
        value = getattr(args, name)
        parts += [f"--{name} {value}"] if value is not None else []
    return " ".join(parts)


def notes_of(args: argparse.Namespace) -> str:
    """What a reader has to know before he sets the figures side by side."""
    limit = f"{args.limit:,} training examples of a task" if args.limit else "all training data"
    epochs = f"{args.epochs} epochs" if args.epochs else "the paper's number of epochs"
    return (
        f"Ours: encoder {args.encoder}, {limit}, {epochs}, {args.precision}; the paper's is "
        "bert-base-uncased on 283,010 pairs of Quora. The best epoch was chosen on the dev set "
        "that is reported, by the paper as by us."
    )
