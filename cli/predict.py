"""Predict new texts with a run: run.py --mode predict --run RUN --input FILE --text TEXT

Without --input, texts are read from standard input: one on each line, or two with a tab between
them. Predictions go to --output or to standard output. Each row has all columns of the input, then
the predictions. With --input, a last column, reason, says if a text is empty or was cut. A row with
an empty text has no prediction. An example:

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
    text = "tasks to predict (default: all tasks of the run that fit the texts)"
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
        parser.error("--text needs --input FILE; standard input has no columns")
    if args.text and len(args.text) > 2:
        parser.error(f"--text takes one or two columns, found {len(args.text)}")
    if args.output:
        check_output_file("output", args, parser, ".csv", ".tsv")
    machine = RunConfig(**parser.given(args))
    source = Path(args.input) if args.input else None
    layout = Layout(**layout_keys(args.table))
    # Faulty input is reported before the model is loaded.
    header, rows = read_rows(source, args.text or (), layout)
    if source and not rows:
        raise UserError(f"{args.input}: the file has no rows to predict")
    model = load(args.run, machine.device, machine.max_tokens)
    precision = model.model.bi_encoder.choose_precision(machine.precision)
    if rows and len(rows[0][0]) == 2:
        names = model.chosen(args.tasks, 2)
        if alone := [name for name in names if model.tasks_by_name[name].texts == 1]:
            read = repr(args.text[0]) if args.text else "the first text"
            print(f"for {all_names(alone)}, only {read} is read", file=sys.stderr)
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
