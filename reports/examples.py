"""Dev examples that systems predict differently, or a lone system wrongly, with their texts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from common.errors import UserError
from multitask.run_folder import has_changed
from reports.scores import TaskScores
from reports.systems import System
from tasks import data_folder
from tasks.base import Task
from tasks.readers import Examples

SHOWN = 10  # examples per task


@dataclass(frozen=True)
class Answer:
    """One system's prediction of an example, and whether it is right.

    A number counts as right if no other system's is nearer to the label, several labels if all are
    those of the example.
    """

    text: str
    right: bool


@dataclass(frozen=True)
class Shown:
    """One example: its texts, its label, and the prediction of each system."""

    texts: tuple[str, ...]
    label: str
    predictions: tuple[Answer, ...]


def telling_examples(
    one: TaskScores, systems: Sequence[System], count: int = SHOWN
) -> list[Shown] | None:
    """Return examples on which the systems' predictions differ, or a lone one's and the label.

    They are sorted by the largest distance of scores, of the first seed of each system. None if the
    data of the runs cannot be found or has changed.
    """
    runs = [system for system in systems if system.name in one.systems]
    examples = dev_examples(runs, one.task)
    if examples is None:
        return None
    row_of = {identity: row for row, identity in enumerate(examples.ids)}
    cells = [one.cells(name)[0] for name in one.systems]
    values, predictions = ([by[cell] for cell in cells] for by in (one.values, one.predictions))
    if len(cells) == 1:
        values, predictions = [*values, label_values(one)], [*predictions, one.targets]
    several = [distances(*pair) for pair in combinations(values, 2)]
    distance = np.max(several, axis=0)
    found: list[Shown] = []
    for row in np.argsort(-distance, kind="stable"):
        if (place := row_of.get(str(one.ids[row]))) is None:
            return None  # the data is not that of the runs
        answers = [answer(one.task, predicted[row]) for predicted in predictions]
        if len({*answers}) > 1:  # probabilities may differ for the same class
            texts = tuple(column[place] for column in examples.texts)
            label, right = one.targets[row], are_right(one, predictions[: len(cells)], row)
            shown = tuple(map(Answer, answers[: len(cells)], right))
            found.append(Shown(texts, answer(one.task, label), shown))
        if len(found) == count:
            break
    return found


def dev_examples(systems: Sequence[System], task: Task) -> Examples | None:
    """Return the dev examples of the first run that records its data.

    Return None if they are not here, or if their file has changed since a run began, unless rows
    of an own task have ids.
    """
    runs = [run for one in systems for run in one.runs]
    known = [run.settings.get("data") for run in runs]
    data = next((one for one in known if one is not None), None)  # merged runs record none
    if data is None:
        return None
    file = Path(task.source.where(data_folder(str(data)), "dev"))
    own = [(run, run.own_tasks.get(task.name)) for run in runs]
    without_ids = [run for run, one in own if one is None or one.id is None]
    if has_changed(without_ids, task.name, "dev", file):
        return None
    with suppress(UserError):
        return task.read(data_folder(str(data)), "dev")
    return None


def label_values(one: TaskScores) -> np.ndarray:
    """Return the labels as scores that are certain."""
    classes = one.task.kind.classes
    return one.targets if classes is None else np.eye(classes)[one.targets]


def distances(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return distances (N,) of numbers (N,), or total variation of probabilities (N, C)."""
    distance = np.abs(values.astype(np.float64) - others)
    return distance if distance.ndim == 1 else distance.sum(1) / 2


def answer(task: Task, value: np.ndarray) -> str:
    """Return a label or a prediction as text: a class, several labels, or a number."""
    names = task.kind.names
    if task.kind.classes is not None:
        return names[int(value)]
    if task.kind.labels is not None:
        return ", ".join(n for n, has in zip(names, value, strict=True) if has) or "none"
    show = task.output.show if task.output else str  # the numbers of the task's own files
    return f"{float(show(value)):z.2f}"


def are_right(one: TaskScores, predictions: Sequence[np.ndarray], row: int) -> list[bool]:
    """Return which predictions of a row are right; of numbers, which is nearest to the label."""
    several, label = np.stack([predicted[row] for predicted in predictions]), one.targets[row]
    if one.task.kind.columns is not None:
        return [bool(np.all(value == label)) for value in several]
    errors = np.round(np.abs(several.astype(np.float64) - label), 2)
    nearest = errors.min() if len(errors) > 1 else 0.0
    return [bool(error == nearest) for error in errors]
