"""What the runs of systems predict for the dev examples of their common tasks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from common.errors import UserError
from ensemble.alignment import aligned
from multitask.runs import check_same_rows
from reports.systems import NO_SEED, System
from tasks import CS224N, in_order
from tasks.base import Task
from tasks.kinds import Kind
from tasks.metrics import mean_score

Cell = tuple[str, int]  # name of a system, seed


@dataclass(frozen=True)
class TaskScores:
    """A task's dev examples in the order of their ids, with scores and predictions of all runs.

    `left_out` is the number of examples that selected the members of an ensemble, and are not here.
    The task is that of the first system.
    """

    task: Task
    ids: np.ndarray
    targets: np.ndarray
    values: Mapping[Cell, np.ndarray]
    predictions: Mapping[Cell, np.ndarray]
    left_out: int

    @property
    def metric(self) -> str:
        """The main metric, which selected the best epoch."""
        return self.task.kind.main_metric

    @property
    def systems(self) -> list[str]:
        """The systems that have the task."""
        return list(dict.fromkeys(name for name, _ in self.predictions))

    def cells(self, system: str) -> list[Cell]:
        """Return the cells of a system, by seed."""
        return sorted(cell for cell in self.predictions if cell[0] == system)

    @cached_property
    def metrics(self) -> dict[Cell, dict[str, float]]:
        """The metrics of each run."""
        measure, several = self.task.kind.metrics, self.predictions.items()
        return {cell: measure(found, self.targets) for cell, found in several}

    def figures(self, system: str, metric: str) -> list[float]:
        """Return a metric of a system by seed; none without the task."""
        return [self.metrics[cell][metric] for cell in self.cells(system)]

    def mean(self, system: str) -> float:
        """Return the mean of the main metric over the seeds of a system that has the task."""
        return float(np.mean(self.figures(system, self.metric)))

    @cached_property
    def majority(self) -> dict[str, float]:
        """The metrics of giving the most frequent class to every example."""
        return majority_metrics(self.task.kind, self.targets)


def majority_metrics(kind: Kind, targets: np.ndarray) -> dict[str, float]:
    """Return the metrics of giving the most frequent class to all; empty without classes."""
    if kind.classes is None:
        return {}
    return kind.metrics(np.full_like(targets, np.bincount(targets).argmax()), targets)


def read_tasks(systems: Sequence[System]) -> dict[str, TaskScores]:
    """Read the dev scores of all runs by task.

    Examples on which any system was selected are left out for all of them.
    """
    names = in_order(task for one in systems for task in one.tasks)
    return {task: read_task(task, systems) for task in names}


def read_task(task: str, systems: Sequence[System]) -> TaskScores:
    runs = {
        (one.name, seed): run
        for one in systems
        for (name, seed), run in one.cells.items()
        if name == task
    }
    check_same_rows(runs.values(), task, "dev")
    tables = {str(run.folder): run.scores(task, "dev") for run in runs.values()}
    if without := [folder for folder, one in tables.items() if one.targets is None]:
        raise UserError(f"{without[0]}: the dev examples have no labels")
    described = next(iter(runs.values())).described(task).build()
    table = aligned(tables, described.kind.predictions)
    kept = np.argsort(table.ids, kind="stable")
    kept = kept[~table.selected_on[kept]]
    if not len(kept):
        line = "every dev example selected members of an ensemble"
        raise UserError(f"{task}: {line}; compare fewer ensembles")
    assert table.targets is not None
    rows = {folder: row for row, folder in enumerate(tables)}
    place = {cell: rows[str(run.folder)] for cell, run in runs.items()}
    return TaskScores(
        task=described,
        ids=table.ids[kept],
        targets=table.targets[kept],
        values={cell: table.values[row][kept] for cell, row in place.items()},
        predictions={cell: table.predictions[row][kept] for cell, row in place.items()},
        left_out=int(table.selected_on.sum()),
    )


def overall_tasks(names: Iterable[str]) -> list[str]:
    """Return the tasks of an overall score: those of CS224N, otherwise all; none of one task."""
    found = [*names]
    found = [*CS224N] if {*CS224N} <= {*found} else found
    return found if len(found) > 1 else []


def overall_figures(
    system: str, tasks: Mapping[str, TaskScores], names: Sequence[str]
) -> list[float]:
    """Return the overall score of a system for each seed that has all of these tasks."""
    seeds = [{seed for _, seed in tasks[name].cells(system)} for name in names]
    metrics = {name: tasks[name].metric for name in names}
    return [
        mean_score({n: tasks[n].metrics[system, seed][metrics[n]] for n in names}, metrics)
        for seed in sorted(set.intersection(*seeds) if seeds else ())
    ]


def seeds_of(systems: Iterable[str], tasks: Iterable[TaskScores]) -> list[int]:
    """Return the sorted seeds of the systems' runs, without `NO_SEED`."""
    several = [*systems]
    every = {seed for one in tasks for name, seed in one.predictions if name in several}
    return sorted(every - {NO_SEED})
