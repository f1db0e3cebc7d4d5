"""A system beside another: differences on the same examples or cells, and whether they are real."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensemble.tables import aligned
from reports.statistics import holm, mcnemar, paired_bootstrap, signed_rank
from reports.systems import Scored, predictions
from tasks import build_task
from tasks.metrics import METRICS


@dataclass(frozen=True)
class Difference:
    """A system against the first one on a task: the main metric's mean over seeds, and tests."""

    system: str
    task: str
    metric: str
    difference: float
    interval: tuple[float, float]  # 95 %, over examples
    mcnemar: float | None  # of the first seed both have; None for similarities


def compare_on_task(first: Scored, other: Scored, task: str) -> Difference:
    """Over the same dev examples, found by their ids."""
    metric = build_task(task).kind.main_metric
    every = {
        f"{place}/{seed}": scored.scores[task, seed]
        for place, scored in (("first", first), ("other", other))
        for seed in scored.system.seeds(task)
    }
    table = aligned(every)
    assert table.targets is not None
    targets = table.targets
    found = {
        name: in_order(predictions(every[name], task), every[name].ids, table.ids)
        for name in table.names
    }

    def mean(place: str, rows: np.ndarray) -> float:
        several = [one for name, one in found.items() if name.startswith(place)]
        return float(np.mean([METRICS[metric](one[rows], targets[rows]) for one in several]))

    def difference(rows: np.ndarray) -> float:
        return mean("other", rows) - mean("first", rows)

    common = sorted(set(first.system.seeds(task)) & set(other.system.seeds(task)))
    p = None
    if metric == "accuracy":
        seeds = (common[0],) * 2 if common else (s.system.seeds(task)[0] for s in (first, other))
        one, two = (
            found[f"{place}/{seed}"] == targets
            for place, seed in zip(("first", "other"), seeds, strict=True)
        )
        p = mcnemar(one, two)
    everything = np.arange(len(targets))
    interval = paired_bootstrap(difference, table.ids)
    return Difference(other.system.name, task, metric, difference(everything), interval, p)


def in_order(values: np.ndarray, ids: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Values of `ids` in the order of `wanted`, which are the same."""
    place = {one: row for row, one in enumerate(ids.tolist())}
    return values[[place[one] for one in wanted.tolist()]]


def relative_gain(first: Scored, other: Scored) -> float | None:
    """The mean relative gain of the main metrics over the tasks both have; None without any.

    The multi-task gain of Maninis et al. (2019), Eq. 2, in per cent.
    """
    gains = []
    for task in first.system.tasks:
        if task in other.system.tasks:
            metric = build_task(task).kind.main_metric
            before, after = (np.mean(scored.values(task, metric)) for scored in (first, other))
            gains.append(float((after - before) / abs(before)) if before else 0.0)
    return 100 * float(np.mean(gains)) if gains else None


def paired_cells(first: Scored, other: Scored) -> list[float]:
    """Differences of the main metric over the (task, seed) cells that both systems have."""
    return [
        other.metrics[task][seed][metric] - first.metrics[task][seed][metric]
        for task in first.system.tasks
        for metric in [build_task(task).kind.main_metric]
        for seed in first.system.seeds(task)
        if seed in other.metrics.get(task, {})
    ]


def signed_ranks(first: Scored, others: Sequence[Scored]) -> list[tuple[float | None, int]]:
    """Wilcoxon's p of each system over its cells, adjusted after Holm, and how many it has."""
    cells = [paired_cells(first, other) for other in others]
    adjusted = holm([signed_rank(differences) for differences in cells])
    return [(p, len(found)) for p, found in zip(adjusted, cells, strict=True)]
