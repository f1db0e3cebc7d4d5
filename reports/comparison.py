"""Comparison of two systems on the same examples or cells, with significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensemble.alignment import aligned
from reports.statistics import holm, mcnemar, paired_bootstrap, signed_rank
from reports.system_scores import Scored
from tasks.metrics import METRICS


@dataclass(frozen=True)
class Difference:
    """The difference of a system from the first one on a task: mean over seeds, and tests."""

    system: str
    task: str
    metric: str
    difference: float
    interval: tuple[float, float]  # 95 %, over examples
    mcnemar: float | None  # p of one run of each system; None for similarities
    seeds: tuple[int, int]  # the seeds of these two runs


def compare_on_task(first: Scored, other: Scored, task: str) -> Difference:
    """Compare two systems on the same dev examples, matched by their ids."""
    kind = first.system.task(task).kind
    both = (first, other)

    def folder(scored: Scored, seed: int) -> str:
        return str(scored.system.cells[task, seed])

    folders = [[folder(one, seed) for seed in one.system.seeds(task)] for one in both]
    tables = {
        folder(one, seed): one.scores[task, seed] for one in both for seed in one.system.seeds(task)
    }
    table = aligned(tables, kind.predictions)
    assert table.targets is not None
    targets = table.targets
    said = dict(zip(table.names, table.predictions, strict=True))
    score = METRICS[kind.main_metric].score

    def mean(several: Sequence[str], rows: np.ndarray) -> float:
        return float(np.mean([score(said[one][rows], targets[rows]) for one in several]))

    def difference(rows: np.ndarray) -> float:
        return mean(folders[1], rows) - mean(folders[0], rows)

    seeds = seeds_to_pair(first.system.seeds(task), other.system.seeds(task))
    p = None
    if kind.main_metric == "accuracy":
        right = [said[folder(*run)] == targets for run in zip(both, seeds, strict=True)]
        p = mcnemar(*right)
    return Difference(
        system=other.system.name,
        task=task,
        metric=kind.main_metric,
        difference=difference(np.arange(len(targets))),
        interval=paired_bootstrap(difference, table.ids),
        mcnemar=p,
        seeds=seeds,
    )


def seeds_to_pair(first: Sequence[int], other: Sequence[int]) -> tuple[int, int]:
    """Return the smallest common seed twice, or the smallest of each if they share none."""
    common = set(first) & set(other)
    return (min(common), min(common)) if common else (min(first), min(other))


def relative_gain(first: Scored, other: Scored) -> float | None:
    """Compute the mean relative gain of the main metrics over the common tasks, in per cent.

    This is the multi-task gain of Maninis et al. (2019), Eq. 2. It is None if there are no common
    tasks, or if a score of the first system is 0.
    """
    gains = []
    for task in first.system.tasks:
        if task in other.system.tasks:
            metric = first.system.task(task).kind.main_metric
            before, after = (np.mean(scored.values(task, metric)) for scored in (first, other))
            if not before:
                return None
            gains.append(float((after - before) / abs(before)))
    return 100 * float(np.mean(gains)) if gains else None


def paired_cells(first: Scored, other: Scored) -> list[float]:
    """Return differences of the main metric over the (task, seed) cells of both systems."""
    return [
        other.metrics[task][seed][metric] - first.metrics[task][seed][metric]
        for task in first.system.tasks
        for metric in [first.system.task(task).kind.main_metric]
        for seed in first.system.seeds(task)
        if seed in other.metrics.get(task, {})
    ]


def signed_ranks(first: Scored, others: Sequence[Scored]) -> list[tuple[float | None, int]]:
    """Return Wilcoxon's p (Holm-adjusted) and the number of cells of each system."""
    cells = [paired_cells(first, other) for other in others]
    adjusted = holm([signed_rank(differences) for differences in cells])
    return [(p, len(found)) for p, found in zip(adjusted, cells, strict=True)]
