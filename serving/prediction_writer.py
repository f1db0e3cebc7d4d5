"""Writing the predictions for a file of texts, row by row, as a table or as a GLUE submission.

This module does not import PyTorch.
"""

from __future__ import annotations

import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from serving.prediction_table import PredictionTable, Windows, above_threshold
from tasks.labelled_files import files_of
from tasks.readers import label_fault, to_number
from tasks.text_files import DataError

if TYPE_CHECKING:
    from common.settings import Settings
    from multitask.config import RunConfig
    from serving.model import MultiTaskModel
    from serving.prediction import Prediction
    from serving.row_file import RowFile
    from tasks.base import Task


# Tasks of GLUE's leaderboard. WNLI is not supported; AX is predicted by the head of MNLI.
SUBMITTED = ("cola", "sst2", "mrpc", "sts", "qqp", "mnli", "qnli", "rte")


@dataclass(frozen=True)
class PredictionOptions:
    """Options of the output; `tasks` are those to predict, by default all that fit the texts.

    `label` are the columns with the labels of one task, from which its metrics are computed. With
    `glue`, the output is a submission file for GLUE's leaderboard. With a `coverage`, a column has
    the set of classes or labels, or two columns the ends of the interval. With a `threshold`, a
    class or a label is predicted only if its probability is as high.
    """

    tasks: Sequence[str] | None = None
    label: Sequence[str] = ()
    glue: bool = False
    probabilities: bool = False
    separator: str = "\t"
    coverage: float | None = None
    threshold: float | None = None


def write_predictions(
    run: str,
    source: RowFile,
    file: TextIO,
    options: PredictionOptions,
    machine: RunConfig,
    outside: tuple[type[Settings], ...] = (),
) -> tuple[int, float, str]:
    """Write each row with its predictions; return the number, the time after loading, the metrics.

    `machine` gives device, precision and kernel. Raises DataError if the source changes meanwhile.
    """
    from common.progress import bar
    from multitask.stored_config import reading_of
    from serving.model import MultiTaskModel
    from serving.run_encoder import report_precision

    version, rows = source.version(), source.rows()
    first = next(rows, None)  # reports faulty input before the model is loaded
    reading = reading_of(machine.given)
    model = MultiTaskModel.load(run, machine.device, machine.linear, outside, reading)
    precision = model.model.bi_encoder.choose_precision(machine.precision)
    loaded = time.perf_counter()
    if first is None:
        if options.glue:
            raise DataError(f"{source.file}: expected rows to predict, found none")
        return 0, loaded, ""
    task = only_task(options, model, len(source.columns)) if options.label or options.glue else None
    targets = None
    if task and options.label:
        wanted, separator = label_columns(task, options.label), files_of(task.source).separator
        targets = targets_of(task, source.labels(wanted, separator))
    indices = iter(list(source.indices()) if options.glue else ())
    values, nothing, count = [], [], 0
    marked = source.file is not None or options.threshold is not None
    table = PredictionTable(file, options.separator, options.probabilities, marked)
    if options.glue:
        table.write_rows([["index", "prediction"]])
    total = None if file is sys.stdout else 0  # the number of rows is unknown; no bar on stdout
    with bar("predict", "row", total) as progress:
        windows: Windows = model.predict_stream(
            chain([first], rows),
            options.tasks,
            precision.precision,
            progress.update,
            options.coverage,
            lambda row: row.characters,
        )
        if options.threshold is not None:
            names = model.chosen(options.tasks, len(first))
            windows = above_threshold(windows, model.tasks_by_name, names, options.threshold)
        for window, found in windows:
            source.check_unchanged(version)
            if targets is not None and task:
                values.append(found[task.name].values)
                nothing.append(found[task.name].nothing)
            if task and options.glue:
                table.write_rows(glue_rows(task, found[task.name], indices))
            else:
                table.write(window, found)
            file.flush()
            count += len(window)
            del window, found  # before the next one is read
    source.check_unchanged(version)  # again after the last row: the file may have become shorter
    if task is None or targets is None:
        report_precision(machine.precision, precision)
        return count, loaded, ""
    targets[np.concatenate(nothing)] = np.nan
    if not labelled(targets).any():
        raise DataError(f"{task.name}: expected a row with a label and a prediction, found none")
    report_precision(machine.precision, precision)
    return count, loaded, metrics_table(task, values, targets)


def only_task(options: PredictionOptions, model: MultiTaskModel, texts: int) -> Task:
    """Return the one task that the labels or the GLUE submission belong to."""
    from common.errors import RunError

    names = model.chosen(options.tasks, texts)
    if len(names) != 1:
        flag = "--label" if options.label else "--glue"
        raise RunError(f"{flag}: expected one task, found {', '.join(names)}; choose by --tasks")
    if options.glue and names[0] not in SUBMITTED:
        raise RunError(f"--glue: expected a task of {', '.join(SUBMITTED)}, found {names[0]}")
    task = model.tasks_by_name[names[0]]
    if task.texts > texts:  # a score of a single text
        raise RunError(f"--label: expected pairs of texts for {task.name}, found single ones")
    return task


def glue_rows(task: Task, found: Prediction, indices: Iterator[str]) -> list[list[Any]]:
    """Return rows of an index and a prediction, with classes written as in GLUE's files.

    A leaderboard wants a value for each row, so rows with an empty text have one too.
    """
    from tasks import DECLARED

    if task.kind.classes is None:
        pairs = zip(found.labels, found.values, strict=True)
        return [[next(indices), label or str(value)] for label, value in pairs]
    labels = DECLARED[task.name].labels if task.name in DECLARED else ("0", "1")
    return [[next(indices), labels[int(value)]] for value in found.values]


def metrics_table(task: Task, values: list[np.ndarray], targets: np.ndarray) -> str:
    """Return the task's metrics over the rows with a label, as a table."""
    from reports.tables import text_table

    metrics = metrics_of(task, np.concatenate(values), targets)
    rows = [[task.name, name, f"{value:.4f}"] for name, value in metrics.items()]
    return f"{text_table(['task', 'metric', f'{np.sum(labelled(targets)):,} rows'], rows)}\n\n"


def metrics_of(task: Task, values: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """Compute the task's metrics of predictions (n,) or (n, C) over the rows with a label."""
    known = labelled(targets)
    labels = targets[known] if task.kind.classes is None else targets[known].astype(np.int64)
    return task.kind.metrics(values[known], labels)


def labelled(targets: np.ndarray) -> np.ndarray:
    """Return which rows of targets (n,) or (n, C) have a label: (n,)."""
    return ~np.isnan(targets.reshape(len(targets), -1)).any(axis=1)


def label_columns(task: Task, given: Sequence[str]) -> Sequence[str]:
    """Return the columns of labels in the order of the task; raise RunError for wrong ones."""
    from common.errors import RunError

    wanted = files_of(task.source).indicators
    if sorted(given) != sorted(wanted) if wanted else len(given) != 1:
        expected = f"the columns {' '.join(wanted)}" if wanted else "one column"
        raise RunError(f"--label: expected {expected} for {task.name}, found {' '.join(given)}")
    return wanted or given


def targets_of(task: Task, labels: Iterable[tuple[str, ...]]) -> np.ndarray:
    """Return the labels as numbers (n,) on the scale of predictions, or (n, C) of C labels.

    `labels` are pairs of a position in the file and a label: a class as in the task's files, a
    class name, a list of labels as there, or for similarities any number. A task with a column for
    each label has the fields of all columns after the position. Blank labels and labels of classes
    that the task leaves out become NaN. Raises DataError for an invalid label, and if all labels
    are NaN.
    """
    names, files, classes = task.kind.class_names, files_of(task.source), task.kind.classes
    several = task.kind.labels
    found = array("d")
    for where, *fields in labels:
        cells = [one.strip() for one in fields]
        text = cells[0]
        if any(one in files.blank for one in cells):
            found.extend([np.nan] * (several or 1))
        elif files.indicators:
            target = files.target(cells, where)
            found.extend(target if isinstance(target, tuple) else (target,))
        elif classes is None and several is None:
            value = to_number(text)
            if value is None:
                raise DataError(f"{where}: expected a number, found {text!r}")
            found.append(value)
        elif several is None and text in names and to_number(text) is None:
            found.append(float(names.index(text)))
        else:
            try:
                label_number = files.parse_label(text)
            except ValueError as error:
                raise DataError(f"{where}: {label_fault(error, text, names)}") from error
            left_out = classes is not None and label_number >= classes
            found.extend(np.atleast_1d(np.nan if left_out else label_number).astype(float))
    targets = np.array(found, np.float64).reshape(-1 if several is None else (-1, several))
    if not len(targets) or not labelled(targets).any():
        raise DataError(f"{task.name}: expected a row with a label, found none")
    return targets
