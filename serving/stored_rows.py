"""Rows and labels of Python as the files of a task, with or without rows held out for dev."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tasks.own_task import OwnTask, own_task
from tasks.own_tasks import LABEL, TEXTS, store_rows
from tasks.own_types import TYPES
from tasks.readers import text_hash
from tasks.registry import TargetType
from tasks.splits import deal

HEAD = "label"  # name of the task
MARKS = ("|", ";", "/", "~", "^")  # separators of several labels


class Targets(NamedTuple):
    """Labels of n rows: what is predicted, the fields of a file, and keys of a description."""

    predicts: TargetType
    labels: Sequence[Any]
    keys: Mapping[str, Any]


def holds_lists(labels: Any) -> bool:
    """Return whether labels are lists or sets of labels; rows of numbers of one length are not."""
    if getattr(labels, "ndim", 1) != 1 or not hasattr(labels, "__iter__"):
        return False
    rows = list(labels)
    if not rows or not all(isinstance(row, list | tuple | set | frozenset) for row in rows):
        return False
    numbers = all(isinstance(one, int | float | np.number) for row in rows for one in row)
    return not numbers or len({len(row) for row in rows}) > 1


def several(marks: np.ndarray, labels: Sequence[Any]) -> Targets:
    """Return marks (n, C) of 0 and 1 as targets with any number of labels."""
    names = [str(one) for one in labels]
    rows = [[name for name, mark in zip(names, row, strict=True) if mark] for row in marks]
    separator = next((mark for mark in MARKS if not any(mark in name for name in names)), None)
    if separator is None:
        raise ValueError(f"y: expected labels without one of {' '.join(MARKS)}, found all of them")
    return Targets("labels", rows, {"labels": names, "separator": separator})


def stored_task(
    rows: Sequence[tuple[str, ...]], targets: Targets, held: float, seed: int, folder: Path
) -> OwnTask:
    """Store rows as files in a folder and return a task that reads them.

    A share `held` of the rows, drawn by the seed, is dev, a little less if rows with equal texts,
    which stay together, do not fit; with 0, dev is the training file. Raise ValueError if no type
    of own tasks predicts this from so many texts, for a blank label, or if all texts are equal.
    """
    width = len(rows[0])
    able = {name: own for name, own in TYPES.items() if own.predicts == targets.predicts}
    kind = next((name for name, own in able.items() if width in own.texts), None)
    if kind is None:
        expected, found = ("pairs of", "single") if width == 1 else ("single", "pairs of")
        what = f"{expected} texts, to predict a {targets.predicts}"
        raise ValueError(f"X: expected {what}, found {found} texts")
    columns = TEXTS[:width]
    every = [
        dict(zip((*columns, LABEL), (*row, label), strict=True))
        for row, label in zip(rows, targets.labels, strict=True)
    ]
    description = {"type": kind, "text": list(columns), "label": LABEL, **targets.keys}
    count = max(1, round(held * len(every))) if held else 0
    if count >= len(every):
        found = f"found {len(every)} and validation_fraction={held}"
        raise ValueError(f"X: expected more rows than are held out, {found}")
    order = np.random.default_rng(seed).permutation(len(every))
    known = np.array([text_hash(texts) for texts in rows], np.uint64)
    train, dev = ([every[row] for row in sorted(part)] for part in deal(known, order, (count,)))
    if count and not dev:
        found = f"found each too often for validation_fraction={held}"
        raise ValueError(f"X: expected texts with different letters or digits, {found}")
    file = store_rows(folder, "train", train)
    files = {"train": str(file), "dev": str(store_rows(folder, "dev", dev) if count else file)}
    return own_task(HEAD, description | files).completed()
