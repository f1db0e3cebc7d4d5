"""Predict new texts with a run: run.py --mode predict --run RUN --input FILE --text TEXT

Without --input, one text per line is read from standard input, or two with a tab between them. The
predictions are written to --output or to standard output, one line per text, after all columns of
the input. The last column of a file, reason, marks rows with an empty text, whose prediction is
empty, and texts that were cut. A line gives the number of these rows:

    echo "a film to love" | python run.py --mode predict --run RUN
"""

import argparse
import sys
import time
from pathlib import Path

from cli.flags import LAYOUT, SEVERAL, Parser, add_run, check_output_file, path
from common.errors import UserError, all_names, counted
from multitask.settings.config import RunConfig
from tasks.csv_files import Layout
from tasks.own_tasks import layout_keys


def add_flags(parser: Parser) -> None:
    add_run(parser)
    text = "tasks of the run to predict (default: all that fit the texts)"
    parser.add_argument("--tasks", metavar="TASK", help=text, **SEVERAL)
    add = parser.add_argument_group("files").add_argument
    text = "file with a text per line, or a table with --text (default: standard input)"
    add("--input", type=path, metavar="FILE", help=text)
    text = "column of the text, or two for pairs; single-text tasks read the first text of a pair"
    add("--text", metavar="COLUMN", help=text, **SEVERAL)
    add("--table", **LAYOUT)
    text = ".csv or .tsv file (default: standard output)"
    add("--output", type=path, metavar="FILE", help=text)
    add("--overwrite", action="store_true", help="replace an existing output")
    add("--probabilities", action="store_true", help="add one column per class")
    parser.add_settings(("max_tokens", "precision", "device"))


def main(args: argparse.Namespace, parser: Parser) -> int:
    from common.files import atomic_path
    from serving.model import load
    from serving.predict_file import predict_rows, read_rows

    if args.text and not args.input:
        parser.error("--text: expected --input FILE, found standard input")
    if args.text and len(args.text) > 2:
        parser.error(f"--text: expected one or two, found {len(args.text)}")
    if args.output:
        check_output_file("output", args, parser, ".csv", ".tsv")
    machine = RunConfig(**parser.given(args))
    source = Path(args.input) if args.input else None
    layout = Layout(**layout_keys(args.table))
    # Faulty input is reported before the model is loaded.
    header, rows = read_rows(source, args.text or (), layout)
    if source and not rows:
        raise UserError(f"{args.input}: expected rows to predict, found none")
    model = load(args.run, machine.device, machine.max_tokens)
    precision = model.model.bi_encoder.choose_precision(machine.precision)
    if rows and len(rows[0][0]) == 2:
        names = model.chosen(args.tasks, 2)
        if alone := [name for name in names if model.tasks_by_name[name].texts == 1]:
            read = repr(args.text[0]) if args.text else "the first text"
            print(f"{all_names(alone)}: only {read} is read", file=sys.stderr)
    given = (model, header, rows, args.tasks, precision.precision, args.probabilities)
    if args.output:
        target, begin = Path(args.output), time.perf_counter()
        separator = "\t" if target.suffix.lower() == ".tsv" else ","
        with atomic_path(target) as new, new.open("x", encoding="utf-8", newline="") as file:
            predict_rows(*given, file, separator, reasons=source is not None)
        rate = len(rows) / (time.perf_counter() - begin)
        print(f"{counted(len(rows), 'row')}, {rate:,.0f} rows/s: {target}")
    else:
        predict_rows(*given, sys.stdout, reasons=source is not None)
    if machine.precision == "auto":
        print(precision, file=sys.stderr, flush=True)
    return 0
