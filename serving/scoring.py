"""How right a trained model is on labelled rows that it has not seen."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from serving.model import files_of
from tasks.base import Task
from tasks.readers import to_number
from tasks.text_files import DataError


def targets_of(task: Task, labels: Iterable[tuple[str, str]]) -> np.ndarray:
    """Labels, each after the place where it stands, as numbers (n,), on the scale of predictions.

    A class is written as in the task's own files or as people call it; a similarity is any number.
    NaN are blank labels and, of a task with its first classes alone, those of the others. Raises
    DataError with the place of a label that is none, and where all are NaN.
    """
    names, files, classes = task.kind.class_names, files_of(task.source), task.kind.classes
    found = []
    for where, label in labels:
        text = label.strip()
        if text in files.blank:
            found.append(np.nan)
        elif classes is None:
            found.append(number_of(text, where))
        elif text in names and to_number(text) is None:
            found.append(float(names.index(text)))
        else:
            try:
                label_number = files.parse_label(text)
            except ValueError as error:
                raise DataError(f"{where}: {error}, found {text!r}") from error
            found.append(label_number if label_number < classes else np.nan)
    targets = np.array(found)
    if np.isnan(targets).all():
        raise DataError(f"{task.name}: expected a row with a label, found none")
    return targets


def number_of(text: str, where: str) -> float:
    value = to_number(text)
    if value is None:
        raise DataError(f"{where}: expected a number, found {text!r}")
    return value


def metrics_of(task: Task, values: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """The task's metrics of what is predicted (n,), over the rows with a label."""
    known = ~np.isnan(targets)
    wanted = targets[known] if task.kind.classes is None else targets[known].astype(np.int64)
    return task.kind.metrics(values[known], wanted)
