"""Predictions of a head for some rows: values, labels, and rows without a text or cut ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from common.errors import Notice, counted
from tasks.base import Task
from tasks.calibration import temperature_scaled
from tasks.readers import to_number

EMPTY_TEXT = "empty text"  # why a row has no prediction


@dataclass(frozen=True)
class Prediction:
    """Predictions of one head for n texts or pairs.

    `labels` are texts; `values` (n,) are the same as numbers, or as texts where labels are words,
    or 0 and 1 for each of several labels (n, C). `index` (n,) is the place of the class in
    `class_names`, or None for other tasks. `probabilities` (n, C) are those of the classes, or None
    for numbers. `empty` (n,) is true for rows with an empty text that the head reads: their label
    is empty, and all else about them means nothing. `cut` (n,) is true for rows with a text that is
    longer than the limit: the head has read only its beginning.
    """

    task: str
    values: np.ndarray
    labels: list[str]
    empty: np.ndarray
    cut: np.ndarray
    index: np.ndarray | None = None
    class_names: tuple[str, ...] = ()
    probabilities: np.ndarray | None = None


def prediction(
    task: Task,
    scores: np.ndarray,
    empty: np.ndarray,
    cut: np.ndarray,
    temperature: float | None,
) -> Prediction:
    """Convert scores (n, C) or (n,) to values and labels; rows that are `empty` have no label.

    A temperature scales the probabilities of classes. It does not change which is predicted.
    """
    values, names, index = task.kind.predictions(scores), task.kind.names, None
    show = task.output.show if task.output else str
    shares: np.ndarray | None = scores
    if task.kind.classes is not None:
        index, labels = values, [names[int(value)] for value in values]
        values = as_numbers(names)[index]
        if temperature is not None:
            shares = temperature_scaled(scores, temperature).astype(scores.dtype)
    else:
        labels = [show(value) for value in values]
        if task.kind.labels is None:
            values, shares = as_numbers(labels), None
    labels = ["" if nothing else label for nothing, label in zip(empty, labels, strict=True)]
    return Prediction(task.name, values, labels, empty, cut, index, names, shares)


def as_numbers(labels: Sequence[str]) -> np.ndarray:
    """Return labels as numbers, whole ones if all are; or as they are, if some are words."""
    if None in map(to_number, labels):
        return np.array(labels)
    try:
        return np.array([int(one) for one in labels])
    except ValueError:
        return np.array([float(one) for one in labels])


def joined(parts: Sequence[Prediction]) -> Prediction:
    """Concatenate the predictions of all windows."""
    arrays: dict[str, Any] = {
        field.name: np.concatenate([getattr(one, field.name) for one in parts])
        for field in fields(Prediction)
        if isinstance(getattr(parts[0], field.name), np.ndarray)
    }
    return replace(parts[0], labels=[label for one in parts for label in one.labels], **arrays)


def rows_with(mark: str, several: Iterable[Prediction]) -> np.ndarray:
    """Return for each row (n,) whether it is `empty` or `cut` for any head."""
    return np.asarray(np.any([getattr(one, mark) for one in several], axis=0))


def is_empty(text: str) -> bool:
    """Return whether a text has no character but white space."""
    return not text.strip()


def warn_of_empty_texts(empty: int, total: int, result: str = "no prediction") -> None:
    """Warn the caller's caller if rows have an empty text; `result` is what they have instead."""
    if empty:
        has = "has" if empty == 1 else "have"
        line = f"{empty:,} of {counted(total, 'row')} {has} an empty text, and {result}"
        warnings.warn(line, Notice, stacklevel=3)
