"""Labels in a file of texts, and the metrics of its predictions.

This module does not import PyTorch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tasks.labelled_files import files_of
from tasks.readers import label_fault, to_number
from tasks.text_files import DataError

if TYPE_CHECKING:
    from serving.prediction import Prediction
    from serving.row_file import RowFile
    from tasks.base import Task


class Graded:
    """The labels of a task in a file, and the predictions for its rows."""

    def __init__(self, task: Task, source: RowFile, columns: Sequence[str]) -> None:
        """Read the labels in these columns; raise RunError for wrong columns, DataError for labels.

        At least one row must have a label.
        """
        names, separator = label_columns(task, columns), files_of(task.source).separator
        self.task = task
        self.targets = targets_of(task, source.labels(names, separator))
        self.values: list[np.ndarray] = []
        self.nothing: list[np.ndarray] = []

    def add(self, found: Prediction) -> None:
        """Add the predictions of the next rows."""
        self.values.append(found.values)
        self.nothing.append(found.nothing)

    def table(self) -> str:
        """Return the metrics over the rows with a label and a prediction; raise DataError for none.

        All rows must have been added.
        """
        from reports.tables import text_table

        targets = self.targets.copy()
        targets[np.concatenate(self.nothing)] = np.nan
        if not (count := int(labelled(targets).sum())):
            line = "expected a row with a label and a prediction, found none"
            raise DataError(f"{self.task.name}: {line}")
        metrics = metrics_of(self.task, np.concatenate(self.values), targets)
        rows = [[self.task.name, name, f"{value:.4f}"] for name, value in metrics.items()]
        return f"{text_table(['task', 'metric', f'{count:,} rows'], rows)}\n\n"


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
    class name, a list of labels as there, for rankings 1 or 0, or for similarities any number. A
    task with a column for each label has the fields of all columns after the position. Blank labels
    and labels of classes that the task leaves out become NaN. Raises DataError for an invalid
    label, and if all labels are NaN.
    """
    names, files, classes = task.kind.class_names, files_of(task.source), task.kind.classes
    several, ranks = task.kind.labels, task.kind.main_metric == "order_accuracy"
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
            if ranks and value not in (0, 1):
                line = "expected 1 (the first text is better) or 0"
                raise DataError(f"{where}: {line}, found {text!r}")
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
