"""Predictions of a head for some rows: values, labels, and rows without a text or cut ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tasks.base import Task
from tasks.calibration import scaled


@dataclass(frozen=True)
class Prediction:
    """Predictions of one head for n texts or pairs.

    `values` (n,) are class indices, similarities on the scale of the task's files, or 0 and 1 for
    each of several labels (n, C); `labels` are the same as text. `probabilities` (n, C) are those
    of the classes in `class_names`, or None for similarities. `empty` (n,) is true for rows with an
    empty text that the head reads: their label is empty, and their value and probabilities mean
    nothing. `cut` (n,) is true for rows with a text that is longer than the limit: the head has
    read only a part of it, by default its beginning.
    """

    task: str
    values: np.ndarray
    labels: list[str]
    empty: np.ndarray
    cut: np.ndarray
    class_names: tuple[str, ...] = ()
    probabilities: np.ndarray | None = None


def prediction(
    task: Task,
    scores: np.ndarray,
    empty: np.ndarray,
    cut: np.ndarray,
    temperature: float | None = None,
) -> Prediction:
    """Convert scores (n, C) or (n,) to values and labels; rows that are `empty` have no label.

    A temperature scales the probabilities. It does not change which class or label is predicted.
    """
    values, names = task.kind.predictions(scores), task.kind.names
    show = task.output.show if task.output else str
    shares: np.ndarray | None = scores
    if temperature is not None:
        shares = scaled(scores, temperature, task.kind.labels is not None)
    if task.kind.labels is not None:
        labels = [show(one) for one in values]
    elif task.kind.classes is None:
        labels, shares = [show(value) for value in values], None
        values = np.array([float(one) for one in labels])
    else:
        labels = [names[int(value)] for value in values]
    labels = ["" if nothing else label for nothing, label in zip(empty, labels, strict=True)]
    return Prediction(task.name, values, labels, empty, cut, names, shares)


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
