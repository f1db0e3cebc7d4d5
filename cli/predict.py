"""Predict new texts with a run: run.py --mode predict --run RUN --input FILE --column TEXT

Without --input, one text per line is read from standard input, or two with a tab between them. The
predictions are written to --output or to standard output, one line per text, after all columns of
the input. The last column of a file, reason, marks rows with an empty text, whose prediction is
empty, and texts that were cut. A line gives the number of these rows:

    echo "a film to love" | python run.py --mode predict --run RUN
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from cli.output_file import check_output_file
from cli.settings_flags import USE, USE_AGAIN, Flags, path, typed
from common.settings import Name
from multitask.settings.config import RunConfig
from serving.prediction_table import PredictionOptions


def add_flags(parser: Any) -> None:
    parser.add_argument(
        "--run",
        type=path,
        required=True,
        metavar="RUN",
        help="folder of a run or of an export (required)",
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        action="extend",
        metavar="TASK",
        help="tasks of the run to predict (default: all that fit the texts)",
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--input",
        type=path,
        metavar="FILE",
        help="file with one text per line, or a .csv, .tsv, .jsonl or .parquet file with --column "
        "(default: standard input)",
    )
    files.add_argument(
        "--column",
        nargs="+",
        action="extend",
        metavar="NAME",
        help="column of the text, or two columns for pairs; single-text tasks read the first text "
        "of a pair",
    )
    files.add_argument(
        "--quotes",
        choices=("yes", "no"),
        help="no if quotes in tab-separated files are plain text, as in GLUE's (default: yes)",
    )
    files.add_argument(
        "--output", type=path, metavar="FILE", help=".csv or .tsv file (default: standard output)"
    )
    files.add_argument("--overwrite", action="store_true", help="replace an existing output")
    files.add_argument("--probabilities", action="store_true", help="add one column per class")
    files.add_argument(
        "--glue",
        type=typed(Name),
        nargs="?",
        const="index",
        metavar="INDEX",
        help="write a submission file for GLUE's leaderboard with the index of each test row, "
        "from the column INDEX (default: index; QQP has id), and the label predicted for one "
        "of --tasks; implies --quotes no",
    )
    parser.flags = flags = Flags(parser, defaults={"max_tokens": "that of the run"})
    flags.add_settings(("max_tokens", "precision", "device"))
    flags.add("use", "training", USE_AGAIN, **USE)


def main(args: argparse.Namespace, parser: Any) -> int:
    from common.files import atomic_path
    from serving.prediction_writer import write_predictions
    from serving.row_file import RowFile

    check_flags(args, parser)
    machine = RunConfig(**parser.flags.given(args))
    quoted = args.quotes != "no" and not args.glue
    source = RowFile(args.input, tuple(args.column or ()), args.glue, quoted)
    write = partial(write_predictions, args.run, source)
    how = options_of(args), machine
    if not args.output:
        write(sys.stdout, *how)
        return 0
    check_output_file(args, parser, (".tsv",) if args.glue else (".csv", ".tsv"))
    target, begin = Path(args.output), time.perf_counter()
    with atomic_path(target) as new, new.open("x", encoding="utf-8", newline="") as file:
        written = write(file, *how)
    rate = written.rows / (time.perf_counter() - written.loaded)
    loading = f"{written.loaded - begin:.1f} s of loading"
    print(f"{written.rows:,} rows, {rate:,.0f} rows/s after {loading}: {target}")
    return 0


def check_flags(args: argparse.Namespace, parser: Any) -> None:
    """End with a line about flags that contradict each other, or need another one."""
    if args.column and not args.input:
        parser.error("--column: expected --input FILE, found standard input")
    if args.column and len(args.column) > 2:
        parser.error(f"--column: expected one or two, found {len(args.column)}")
    if args.glue and not (args.column and args.output):
        parser.error("--glue: expected --input, --column and --output")
    if args.glue and args.quotes == "yes":
        parser.error("--glue: expected --quotes no, which it implies, found yes")
    if args.glue and args.probabilities:
        parser.error("--glue and --probabilities: expected at most one of them")
    if args.overwrite and not args.output:
        parser.error("--overwrite: expected --output FILE, found none")


def options_of(args: argparse.Namespace) -> PredictionOptions:
    """Return the options of the output; its separator follows from the ending of its file."""
    comma = Path(args.output or "").suffix.lower() == ".csv"
    return PredictionOptions(
        args.tasks,
        glue=bool(args.glue),
        probabilities=args.probabilities,
        separator="," if comma else "\t",
    )
