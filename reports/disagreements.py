"""The dev examples on which systems disagree the most, with their texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from common.errors import UserError
from ensemble.alignment import aligned
from reports.system_scores import Scored
from tasks import data_folder

SHOWN = 8  # examples a task


@dataclass(frozen=True)
class Disagreement:
    """One example: its texts, its label, and what each system says."""

    texts: tuple[str, ...]
    label: str
    said: tuple[str, ...]


def disagreements(
    systems: Sequence[Scored], task: str, count: int = SHOWN
) -> list[Disagreement] | None:
    """Examples on which two systems predict differently: other classes, or other second decimals.

    By the largest distance of two systems' probabilities (total variation) or similarities, of each
    system's first seed. None where fewer than two systems have the task or the data that the runs
    were made from is not there.
    """
    having = [one for one in systems if task in one.metrics]
    if len(having) < 2:
        return None
    known = [run.config.get("data") for one in having for run in one.system.runs]
    data = next((one for one in known if one is not None), None)  # merged runs tell none
    if data is None:
        return None
    try:
        examples = having[0].system.task(task).read(data_folder(str(data)), "dev")
    except (UserError, OSError):
        return None
    row_of = {one: row for row, one in enumerate(examples.ids)}
    table = aligned(
        {str(i): one.scores[task, one.system.seeds(task)[0]] for i, one in enumerate(having)},
        having[0].system.task(task).kind.predictions,
    )
    assert table.targets is not None
    similarities = table.values.ndim == 2
    distance = np.max([apart(*pair) for pair in combinations(table.values, 2)], axis=0)
    found: list[Disagreement] = []
    for row in np.lexsort((table.ids, -distance)):
        if (place := row_of.get(str(table.ids[row]))) is None:
            return None  # other data than the runs'
        said = table.predictions[:, row]
        shown = tuple(f"{value:z.2f}" if similarities else f"{value:.0f}" for value in said)
        if len(set(shown)) > 1:  # the probabilities of one class may be far apart, too
            texts = tuple(column[place] for column in examples.texts)
            found.append(Disagreement(texts, f"{table.targets[row]:g}", shown))
        if len(found) == count:
            break
    return found


def apart(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distance of two models' similarities (N,), total variation of probabilities (N, C)."""
    distance = np.abs(values.astype(np.float64) - others)
    return distance if distance.ndim == 1 else distance.sum(1) / 2
