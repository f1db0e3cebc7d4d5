"""What a study costs before it is run: runs, training examples and steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from common.errors import UserError, one_line
from multitask.config_tasks import build_tasks
from multitask.plan import batches_by_task, build_plan
from multitask.settings.config import RunConfig
from reports.tables import Table
from studies.results import Cell, Results
from tasks import data_folder
from tasks.readers import limit_of


class Cost(NamedTuple):
    """Number of runs, and their training examples and optimiser steps."""

    runs: int
    examples: int
    steps: int

    def cells(self) -> list[str]:
        return [str(self.runs), f"{self.examples:,}", f"{self.steps:,}"]


def cost_of(config: RunConfig, runs: int, known: dict[str, list[int]]) -> Cost:
    """Return the cost of runs with a configuration; evaluation is not counted.

    `known` keeps the numbers of training examples for other configurations that read the same.
    """
    key = data_key(config)
    if key not in known:
        folder = data_folder(config.data)
        known[key] = [
            len(task.read(folder, "train", limit_of(config.limit, task.name)))
            for task in build_tasks(config).values()
        ]
    sizes = known[key]
    plan = build_plan(config, sizes)
    every = [step for epoch in range(config.epochs) for step in plan.steps(epoch + 1)]
    batches = batches_by_task(every, len(sizes))
    examples = sum(
        round(count / ceil(size / config.batch_size) * size)
        for count, size in zip(batches, sizes, strict=True)
    )
    return Cost(runs, runs * examples, runs * len(every))


def data_key(config: RunConfig) -> str:
    """Return a text that is the same for configurations which read the same training examples."""
    objective = config.task_objective
    trained_by = objective.name if objective is not None else config.pretraining_objective
    own = (config.data, config.limit, config.seed, config.drop_leaks)
    return repr((trained_by, config.tasks, config.protocol, *own))


def cost_table(cells: Sequence[Cell], results: Results, runs: Path) -> Table:
    """Return the cost of the runs of each cell that are left, and of all cells.

    A cell from which others start is counted once, with a run for each of their seeds that are
    left. Runs that stop early cost less. A cell that cannot be run has the reason as its row.
    """
    rows, costs, known = [], list[Cost](), dict[str, list[int]]()
    for one, seeds in left_runs(cells, results, runs):
        try:
            cost = cost_of(one.config, len(seeds), known)
        except UserError as error:
            rows.append([one.name, one_line(str(error)), "", ""])
            continue
        costs.append(cost)
        rows.append([one.name, *cost.cells()])
    whole = Cost(*(sum(column) for column in zip(Cost(0, 0, 0), *costs, strict=True)))
    return ["cell", "runs", "examples", "steps"], [*rows, ["all", *whole.cells()]]


def left_runs(cells: Sequence[Cell], results: Results, runs: Path) -> list[tuple[Cell, set[int]]]:
    """Return the cells with the seeds that are left; a base cell precedes those that need it.

    Earlier runs with a finished folder in `runs` are not repeated.
    """
    found: dict[str, tuple[Cell, set[int]]] = {}
    for one in cells:
        left = set(one.seeds) - results.figures_by_seed(one).keys()
        if not left:
            continue
        for seed in left:
            for before, number in one.every_earlier_run(seed):
                if results.finished_folder(before, number, runs) is None:
                    found.setdefault(before.name, (before, set()))[1].add(number)
        found[one.name] = one, left
    return list(found.values())
