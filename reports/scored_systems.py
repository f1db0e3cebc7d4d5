"""Metrics of systems, from the stored dev scores of their runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import UserError
from common.progress import with_bar
from ensemble.alignment import aligned
from multitask.runs import Run, check_same_rows
from reports.systems import NO_SEED, System, group_runs
from tasks import CS224N, in_order
from tasks.base import Task
from tasks.kinds import Kind
from tasks.metrics import overall
from tasks.predictions import Scores


@dataclass(frozen=True)
class ScoredSystem:
    """Metrics of a system by task, seed and name, and its scores by task and seed.

    `left_out` is the number of dev examples of each task that neither includes.
    """

    system: System
    metrics: Mapping[str, Mapping[int, Mapping[str, float]]]
    scores: Mapping[tuple[str, int], Scores]
    left_out: Mapping[str, int]

    def seeds(self, task: str) -> list[int]:
        return self.system.seeds(task)

    def real_seeds(self, *tasks: str) -> list[int]:
        """Return the sorted seeds of the runs of these tasks, without `NO_SEED`."""
        return sorted({seed for task in tasks for seed in self.seeds(task)} - {NO_SEED})

    def dev_examples(self, task: str) -> int:
        """Return the number of dev examples of a task."""
        return len(self.scores[task, self.seeds(task)[0]].ids)

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


def tasks_of(systems: Sequence[ScoredSystem]) -> tuple[str, ...]:
    """Return the tasks of all systems, in their usual order."""
    return in_order(task for one in systems for task in one.metrics)


def systems_with(systems: Iterable[ScoredSystem], task: str) -> list[ScoredSystem]:
    """Return the systems that have a task."""
    return [one for one in systems if task in one.metrics]


def first_task(systems: Iterable[ScoredSystem], name: str) -> Task:
    """Return the task of this name as the first system that has it defines it."""
    return systems_with(systems, name)[0].system.task(name)


def read_systems(folders: Iterable[tuple[str | None, Path]]) -> list[ScoredSystem]:
    """Read finished runs, each with the name of its system or None, and score their systems."""
    return score_systems(group_runs([(name, Run(folder)) for name, folder in folders]))


def score_systems(systems: Sequence[System]) -> list[ScoredSystem]:
    """Read dev scores from the runs' folders and compute the metrics.

    Examples on which any of the systems was selected are left out for all systems.
    """
    cells = [(*cell, folder) for one in systems for cell, folder in one.cells.items()]
    runs = {run.folder: run for system in systems for run in system.runs}
    for task in in_order(task for task, _, _ in cells):
        check_same_rows([runs[folder] for name, _, folder in cells if name == task], task, "dev")
    scores = {
        (task, seed, folder): runs[folder].scores(task, "dev")
        for task, seed, folder in with_bar("read scores", "cell", cells)
    }
    seen: dict[str, set[str]] = {}
    for (task, _, _), found in scores.items():
        if found.selected_on is not None:
            seen.setdefault(task, set()).update(found.ids[found.selected_on].tolist())
    for (task, seed, folder), found in scores.items():
        if task in seen:
            rows = np.flatnonzero(~np.isin(found.ids, sorted(seen[task])))
            if not len(rows):
                line = "expected dev examples that selected no member of an ensemble, found none"
                raise UserError(f"{task}: {line}; compare fewer ensembles")
            scores[task, seed, folder] = found.rows(rows)
    left_out = {task: len(ids) for task, ids in seen.items()}
    # Those of the first system that has the task.
    kinds = {task: one.task(task).kind for one in reversed(systems) for task in one.tasks}
    return [
        score_system(
            system,
            {cell: scores[*cell, run] for cell, run in system.cells.items()},
            kinds,
            left_out,
        )
        for system in systems
    ]


def score_system(
    system: System,
    scores: Mapping[tuple[str, int], Scores],
    kinds: Mapping[str, Kind],
    left_out: Mapping[str, int],
) -> ScoredSystem:
    """Compute the metrics of a system by task and seed: by `kinds` where outputs are alike."""
    metrics: dict[str, dict[int, dict[str, float]]] = {}
    for task in system.tasks:
        kind, shared = system.task(task).kind, kinds[task]
        if (shared.classes, shared.labels) != (kind.classes, kind.labels):
            shared = kind  # the comparison of the two is refused
        # Raises an error unless all seeds have the same examples and labels.
        cells = {str(system.cells[task, s]): scores[task, s] for s in system.seeds(task)}
        aligned(cells, kind.predictions)
        for seed in system.seeds(task):
            found = scores[task, seed]
            if found.targets is None:
                raise UserError(f"{system.cells[task, seed]}: expected labels, found none")
            predictions = found.predicted(kind.predictions)
            metrics.setdefault(task, {})[seed] = shared.metrics(predictions, found.targets)
    return ScoredSystem(system, metrics, scores, left_out)
