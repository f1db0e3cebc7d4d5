"""Dev examples that systems predict differently, for the page of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from ensemble.alignment import Aligned, aligned
from multitask.run_folder import has_changed
from reports.scored_systems import ScoredSystem, systems_with
from tasks import data_folder
from tasks.base import Task
from tasks.data import dev_if_here
from tasks.readers import Examples

SHOWN = 8  # examples per task


@dataclass(frozen=True)
class Answer:
    """One system's prediction of an example, and whether it is right.

    A similarity counts as right if no other system's is nearer to the label, several labels if
    all are those of the example.
    """

    text: str
    right: bool


@dataclass(frozen=True)
class Disagreement:
    """One example: its texts, its label, and the prediction of each system."""

    texts: tuple[str, ...]
    label: str
    predictions: tuple[Answer, ...]


def disagreements(
    systems: Sequence[ScoredSystem], task: str, count: int = SHOWN
) -> list[Disagreement] | None:
    """Return examples on which systems predict other classes, or other similarities (2 decimals).

    They are sorted by the largest distance between two systems' probabilities (total variation)
    or similarities, from the first seed of each. Returns None if fewer than two systems have the
    task, or if the data of the runs cannot be found or has changed.
    """
    having = systems_with(systems, task)
    if len(having) < 2:
        return None
    described = having[0].system.task(task)
    examples = dev_examples(having, described)
    if examples is None:
        return None
    row_of = {one: row for row, one in enumerate(examples.ids)}
    table = aligned(
        {str(i): one.scores[task, one.seeds(task)[0]] for i, one in enumerate(having)},
        described.kind.predictions,
    )
    distance = np.max([distances(*pair) for pair in combinations(table.values, 2)], axis=0)
    found: list[Disagreement] = []
    for row in np.lexsort((table.ids, -distance)):
        if (place := row_of.get(str(table.ids[row]))) is None:
            return None  # the data is not that of the runs
        label, answers = answers_of(described, table, int(row))
        if len({one.text for one in answers}) > 1:  # probabilities may differ for the same class
            texts = tuple(column[place] for column in examples.texts)
            found.append(Disagreement(texts, label, answers))
        if len(found) == count:
            break
    return found


def dev_examples(systems: Sequence[ScoredSystem], task: Task) -> Examples | None:
    """Return the dev examples of the first run that records its data.

    Return None if they are not here, or if their file has changed since a run began, unless rows
    of an own task have ids.
    """
    runs = [run for one in systems for run in one.system.runs]
    known = [run.settings.get("data") for run in runs]
    data = next((one for one in known if one is not None), None)  # merged runs record none
    if data is None:
        return None
    file = Path(task.source.where(data_folder(str(data)), "dev"))
    own = [(run, run.own_tasks.get(task.name)) for run in runs]
    without_ids = [run for run, one in own if one is None or one.id is None]
    if has_changed(without_ids, task.name, "dev", file):
        return None
    return dev_if_here(task, data)


def answers_of(task: Task, table: Aligned, row: int) -> tuple[str, tuple[Answer, ...]]:
    """Return the label and the systems' predictions of a row, as text."""
    assert table.targets is not None
    label, predictions = table.targets[row], table.predictions[:, row]
    names = task.kind.names
    if task.kind.classes is not None:
        answers = [Answer(names[int(one)], bool(one == label)) for one in predictions]
        return names[int(label)], tuple(answers)
    if task.kind.labels is not None:
        right = (predictions == label).all(-1)
        several = [label_names(names, one) for one in predictions]
        return label_names(names, label), tuple(map(Answer, several, right.tolist()))
    errors = np.round(np.abs(predictions.astype(np.float64) - label), 2)
    show = task.output.show if task.output else str  # the numbers of the task's own files
    answers = [
        Answer(f"{float(show(one)):z.2f}", bool(error == errors.min()))
        for one, error in zip(predictions, errors, strict=True)
    ]
    return f"{float(show(label)):g}", tuple(answers)


def label_names(names: Sequence[str], values: np.ndarray) -> str:
    """Return the names of the labels that have the value 1, of values (C,)."""
    return ", ".join(name for name, value in zip(names, values, strict=True) if value) or "none"


def distances(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return distances (N,) of similarities (N,), or total variation of probabilities (N, C)."""
    distance = np.abs(values.astype(np.float64) - others)
    return distance if distance.ndim == 1 else distance.sum(1) / 2
