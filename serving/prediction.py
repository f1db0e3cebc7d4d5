"""Predictions of a head for some rows: values, labels, and rows without a text or cut ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tasks.base import Task


@dataclass(frozen=True)
class Prediction:
    """Predictions of one head for n texts or pairs.

    `values` (n,) are class indices, similarities on the scale of the task's files, or 0 and 1 for
    each of several labels (n, C); `labels` are the same as text. `probabilities` (n, C) are those
    of the classes in `class_names`, or None for similarities. `empty` (n,) is true for rows with an
    empty text that the head reads: their label is empty, and their value and probabilities mean
    nothing. `cut` (n,) is true for rows with a text that is longer than the limit: the head has
    read only a part of it, by default its beginning. `below` (n,) is true for rows whose label is
    empty because its probability is below a threshold; None without one. Only with a coverage,
    `sets` (n, C) says which classes or labels are in the prediction set, and `intervals` (n, 2) are
    the ends of intervals of numbers.
    """

    task: str
    values: np.ndarray
    labels: list[str]
    empty: np.ndarray
    cut: np.ndarray
    class_names: tuple[str, ...] = ()
    probabilities: np.ndarray | None = None
    sets: np.ndarray | None = None
    intervals: np.ndarray | None = None
    below: np.ndarray | None = None

    @property
    def nothing(self) -> np.ndarray:
        """Which rows have no prediction (n,)."""
        return self.empty if self.below is None else self.empty | self.below


def prediction(task: Task, scores: np.ndarray, empty: np.ndarray, cut: np.ndarray) -> Prediction:
    """Convert scores (n, C) or (n,) to values and labels; rows that are `empty` have no label."""
    values, names = task.kind.predictions(scores), task.kind.names
    show = task.output.show if task.output else str
    shares: np.ndarray | None = scores
    if task.kind.labels is not None:
        labels = [show(one) for one in values]
    elif task.kind.classes is None:
        labels, shares = [show(value) for value in values], None
        values = np.array([float(one) for one in labels])
    else:
        labels = [names[int(value)] for value in values]
    labels = ["" if nothing else label for nothing, label in zip(empty, labels, strict=True)]
    return Prediction(task.name, values, labels, empty, cut, names, shares)


def with_labels(task: Task, found: Prediction, values: np.ndarray) -> Prediction:
    """Return predictions of several labels with other values, 0 or 1 each (n, C)."""
    show = task.output.show if task.output else str
    rows = zip(values, found.empty, strict=True)
    return replace(found, values=values, labels=["" if empty else show(one) for one, empty in rows])


def with_threshold(task: Task, found: Prediction, threshold: float) -> Prediction:
    """Return predictions whose probability is at least `threshold`.

    A class with a lower probability is not predicted. Of several labels, those with at least this
    probability are predicted, possibly none.
    """
    assert found.probabilities is not None, "numbers have no probabilities"
    if task.kind.labels is not None:
        return with_labels(task, found, (found.probabilities >= threshold).astype(np.int64))
    chosen = np.take_along_axis(found.probabilities, found.values[:, None].astype(int), 1)[:, 0]
    below = (chosen < threshold) & ~found.empty
    labels = ["" if low else label for low, label in zip(below, found.labels, strict=True)]
    return replace(found, labels=labels, below=below)


def count_empty(found: Mapping[str, Prediction]) -> int:
    """Return the number of rows with an empty text that a head reads."""
    return int(np.sum(np.any([one.empty for one in found.values()], axis=0)))


def count_cut(found: Mapping[str, Prediction]) -> int:
    """Return the number of rows with a text of which a head reads only a part."""
    return int(np.sum(np.any([one.cut for one in found.values()], axis=0)))


def joined(parts: Sequence[Prediction]) -> Prediction:
    """Concatenate the predictions of all windows."""
    first = parts[0]
    arrays: dict[str, Any] = {
        field.name: np.concatenate([getattr(one, field.name) for one in parts])
        for field in fields(first)
        if isinstance(getattr(first, field.name), np.ndarray)
    }
    return replace(first, labels=[label for one in parts for label in one.labels], **arrays)
