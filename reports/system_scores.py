"""Dev scores of systems, read from the folders of their runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from common.errors import UserError
from ensemble.alignment import aligned
from reports.store import StoredRun
from reports.systems import System
from tasks import CS224N, in_order
from tasks.metrics import overall
from tasks.predictions import Scores, read_scores_of, scores_name


@dataclass(frozen=True)
class Scored:
    """Metrics of a system by task, seed and name, and its scores by task and seed.

    `left_out` is the number of dev examples of each task that neither includes.
    """

    system: System
    metrics: Mapping[str, Mapping[int, Mapping[str, float]]]
    scores: Mapping[tuple[str, int], Scores]
    left_out: Mapping[str, int]

    def predictions(self, task: str, seed: int) -> np.ndarray:
        """Return the stored predictions, or those computed from the scores."""
        return self.scores[task, seed].predicted(self.system.task(task).kind.predictions)

    def values(self, task: str, metric: str) -> list[float]:
        """Return the metric of each seed."""
        return [found[metric] for found in self.metrics.get(task, {}).values()]

    def overall_values(self, name: str) -> list[float]:
        """Return the overall score of each seed that has all three tasks."""
        if not self.metrics.keys() >= set(CS224N):
            return []
        several = {task: self.metrics[task] for task in CS224N}
        common = set.intersection(*(set(found) for found in several.values()))
        every = [
            overall({t: found[seed] for t, found in several.items()}) for seed in sorted(common)
        ]
        return [found[name] for found in every if found]


def tasks_of(systems: Sequence[Scored]) -> tuple[str, ...]:
    """Return the tasks of all systems, in their usual order."""
    return in_order(task for one in systems for task in one.metrics)


def runs_of(systems: Sequence[Scored]) -> list[StoredRun]:
    return [run for one in systems for run in one.system.runs]


def score_systems(systems: Sequence[System]) -> list[Scored]:
    """Read dev scores from the runs' folders and compute the metrics.

    Examples on which any of the systems was selected are left out for all systems.
    """
    scores = {
        (task, seed, folder): read_scores_of(
            folder / "predictions" / scores_name(task, "dev"), system.task(task).kind.classes
        )
        for system in systems
        for (task, seed), folder in system.cells.items()
    }
    seen: dict[str, set[str]] = {}
    for (task, _, _), found in scores.items():
        if found.selected_on is not None:
            seen.setdefault(task, set()).update(found.ids[found.selected_on].tolist())
    for (task, seed, folder), found in scores.items():
        if task in seen:
            rows = np.flatnonzero(~np.isin(found.ids, sorted(seen[task])))
            if not len(rows):
                raise UserError(f"{task}: every dev example selected a member of some ensemble")
            scores[task, seed, folder] = found.rows(rows)
    left_out = {task: len(ids) for task, ids in seen.items()}
    return [
        score_system(
            system, {cell: scores[*cell, run] for cell, run in system.cells.items()}, left_out
        )
        for system in systems
    ]


def score_system(
    system: System, scores: Mapping[tuple[str, int], Scores], left_out: Mapping[str, int]
) -> Scored:
    """Compute the metrics of a system by task and seed."""
    metrics: dict[str, dict[int, dict[str, float]]] = {}
    for task in system.tasks:
        kind = system.task(task).kind
        # Raises an error unless all seeds have the same examples and labels.
        cells = {str(system.cells[task, s]): scores[task, s] for s in system.seeds(task)}
        aligned(cells, kind.predictions)
        for seed in system.seeds(task):
            found = scores[task, seed]
            if found.targets is None:
                raise UserError(f"{system.cells[task, seed]}: expected labels, found none")
            said = found.predicted(kind.predictions)
            metrics.setdefault(task, {})[seed] = kind.metrics(said, found.targets)
    return Scored(system, metrics, scores, left_out)
