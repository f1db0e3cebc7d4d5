"""What `--mode predict` writes: a table beside the texts, or a file for GLUE's leaderboard."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serving.model import Prediction
    from tasks.base import Task


def header_of(
    args: argparse.Namespace, window: list[tuple[str, ...]], found: dict[str, Prediction]
) -> list[str]:
    if args.glue:
        return ["index", "prediction"]
    texts = args.column or ["text", "other text"][: len(window[0])]
    return [*texts, *columns(found, args.probabilities)]


def lines_of(
    args: argparse.Namespace, window: list[tuple[str, ...]], found: dict[str, Prediction]
) -> list[list[Any]]:
    """The texts of each row and what is said of them."""
    return [[*row, *answers(found, place, args.probabilities)] for place, row in enumerate(window)]


def submitted(task: Task, found: Prediction, indices: Iterator[str]) -> list[list[Any]]:
    """The next indices and what is predicted, a class as the task's own files write it."""
    from tasks import CS224N, DECLARED

    show = task.output.show if task.output else str
    if task.name in DECLARED:
        labels = DECLARED[task.name].labels
        return [[next(indices), labels[int(value)]] for value in found.values]
    if task.name in CS224N and task.kind.classes:  # whose own leaderboard writes 1.0
        show = "{:.0f}".format
    return [[next(indices), show(value)] for value in found.values]


def columns(found: dict[str, Prediction], probabilities: bool) -> list[str]:
    """Names of what is answered: `sst`, and `sst: positive` for a probability."""
    names = []
    for task, one in found.items():
        names.append(task)
        if probabilities:
            names += [f"{task}: {name}" for name in one.class_names]
    return names


def answers(found: dict[str, Prediction], place: int, probabilities: bool) -> list[Any]:
    """Of one row."""
    values: list[Any] = []
    for one in found.values():
        values.append(one.labels[place])
        if probabilities and one.probabilities is not None:
            values += [f"{value:.6f}" for value in one.probabilities[place]]
    return values
