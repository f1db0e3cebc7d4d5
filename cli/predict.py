"""What a run says of new texts: run.py --mode predict --run RUN --input FILE --column TEXT

Without --input a text a line is read from standard input, two with a tab between them; answers go
to --output or, a line a text, to standard output:

    echo "a film to love" | python run.py --mode predict --run RUN
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cli.corpus import check_output, shown_in
from cli.settings_flags import USE_AGAIN, Flags, path, typed
from cli.training import MACHINE
from minbert.settings import Name
from multitask.config import RunConfig

if TYPE_CHECKING:
    from serving.model import MultiTaskModel
    from tasks.base import Task


def add_flags(parser: Any) -> None:
    parser.add_argument(
        "--run", type=path, required=True, metavar="RUN", help="folder of a run, or an exported one"
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        metavar="TASK",
        help="some of the run's heads; by default all that fit",
    )
    files = parser.add_argument_group("files")
    files.add_argument(
        "--input",
        type=path,
        metavar="FILE",
        help="one text a line, or a .csv, .tsv, .jsonl or .parquet file with --column; "
        "by default standard input",
    )
    files.add_argument(
        "--column",
        nargs="+",
        metavar="NAME",
        help="column of the text; two of them for pairs, whose first text is what heads of single "
        "texts read",
    )
    files.add_argument(
        "--quotes",
        choices=("yes", "no"),
        help="no where quotes between tabs mean nothing, as in GLUE's files (default: yes)",
    )
    files.add_argument(
        "--label",
        metavar="NAME",
        help="column of what is right, for one of --tasks, whose metrics are printed in the end",
    )
    files.add_argument(
        "--output", type=path, metavar="FILE", help=".csv or .tsv; by default standard output"
    )
    files.add_argument("--overwrite", action="store_true", help="replace an existing output")
    files.add_argument("--probabilities", action="store_true", help="a column for each class, too")
    files.add_argument(
        "--glue",
        type=typed(Name),
        nargs="?",
        const="index",
        metavar="INDEX",
        help="write what GLUE's leaderboard takes, the index of each row of its test file, in the "
        "column INDEX (without: index; QQP has id), and what one of --tasks predicts, as its files "
        "write it; implies --quotes no",
    )
    parser.flags = flags = Flags(parser)
    flags.add_config(("precision", *MACHINE))
    flags.add("use", "training", USE_AGAIN, type=path, action="append", metavar="FILE.py")


def main(args: argparse.Namespace, parser: Any) -> int:
    from minbert.files import whole_file

    args.machine = RunConfig(**parser.flags.given(args, ()))
    args.outside = parser.outside
    if args.column and not args.input:
        parser.error("--column: expected --input FILE, found standard input")
    if args.column and len(args.column) > 2:
        parser.error(f"--column: expected one or two, found {len(args.column)}")
    if args.label and not (args.column and args.output):
        parser.error("--label: expected --input, --column and --output, which leaves room for it")
    if args.glue and not (args.column and args.output):
        parser.error("--glue: expected --input, --column and --output")
    if args.glue and args.quotes == "yes":
        parser.error("--glue: expected --quotes no, which it implies, found yes")
    if args.glue and args.probabilities:
        parser.error("--glue and --probabilities: expected one of them")
    target = Path(args.output) if args.output else None
    if target is None:
        if args.overwrite:
            parser.error("--overwrite: expected --output FILE, found none")
        predict(args, sys.stdout, "\t")
        return 0
    check_output(args, parser, (".tsv",) if args.glue else (".csv", ".tsv"))
    begin = time.perf_counter()
    with whole_file(target) as file:
        count, loaded, judged = predict(
            args, file, "," if target.suffix.lower() == ".csv" else "\t"
        )
    rate = count / (time.perf_counter() - loaded)
    told = f"{count:,} rows, {rate:,.0f} rows/s after {loaded - begin:.1f} s of loading"
    print(f"{judged}{told}: {target}")
    return 0


def predict(args: argparse.Namespace, file: TextIO, separator: str) -> tuple[int, float, str]:
    """Write the answers row by row; how many there were, when the model was loaded, the metrics."""
    from minbert.progress import bar
    from serving import MultiTaskModel
    from serving.answers import answers, columns, shown, submitted
    from serving.row_file import RowFile
    from serving.scoring import targets_of
    from tasks.text_files import DataError

    machine, glue = args.machine, bool(args.glue)
    quoted = args.quotes != "no" and not glue
    source = RowFile(args.input, tuple(args.column or ()), args.glue, quoted)
    version, rows = source.version(), source.rows()
    first = next(rows, None)  # what is wrong with the input is reported before the model is loaded
    model = MultiTaskModel.load(args.run, machine.device, machine.linear, args.outside)
    loaded = time.perf_counter()
    if first is None:
        if glue:
            raise DataError(f"{args.input}: expected rows to predict, found none")
        return 0, loaded, ""
    task = only_task(args, model) if args.label or glue else None
    targets = targets_of(task, source.labels(args.label)) if task and args.label else None
    indices = iter(list(source.indices()) if glue else ())
    values = []

    writer = csv.writer(file, delimiter=separator, lineterminator="\n")
    count = 0
    total = 0 if args.output else None  # a bar without an end, beside a file alone
    with bar("predict", "row", total) as progress:
        for window, found in model.predict_stream(
            chain([first], rows), args.tasks, machine.precision, progress.update
        ):
            source.check_unchanged(version)
            if not count:
                texts = args.column or ["text", "other text"][: len(window[0])]
                header = [*texts, *columns(found, args.probabilities)]
                writer.writerow(shown_in(file, ["index", "prediction"] if glue else header))
            if task and args.label:
                values.append(found[task.name].values)
            if task and glue:
                writer.writerows(submitted(task, found[task.name], indices))
            else:
                for place, row in enumerate(window):
                    line = [*row, *answers(found, place, args.probabilities)]
                    writer.writerow(shown_in(file, line))
            file.flush()
            count += len(window)
    source.check_unchanged(version)  # after the last row, too: a shorter file ends early
    judged = shown(task, values, targets) if task and targets is not None else ""
    return count, loaded, judged


def only_task(args: argparse.Namespace, model: MultiTaskModel) -> Task:
    """The one that `--label` or `--glue` is of."""
    from multitask.errors import RunError
    from serving.answers import SUBMITTED

    names = model.chosen(args.tasks, len(args.column))
    if len(names) != 1:
        flag = "--label" if args.label else "--glue"
        raise RunError(f"{flag}: expected one of {', '.join(names)} by --tasks")
    if args.glue and names[0] not in SUBMITTED:
        raise RunError(f"--glue: expected a task of {', '.join(SUBMITTED)}, found {names[0]}")
    return model.tasks_by_name[names[0]]
