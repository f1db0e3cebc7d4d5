"""Comparison of systems on the same examples or cells, with significance tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from common.progress import bar
from ensemble.alignment import aligned
from reports.scored_systems import ScoredSystem
from reports.significance import holm, mcnemar, paired_bootstrap, signed_rank
from tasks.metrics import LEADERBOARD, METRICS, OVERALL, worst_value


@dataclass(frozen=True)
class Difference:
    """The difference of a system from the first one on a task, or overall: mean over the seeds.

    `resampled` are its values on bootstrap samples of the `examples` and the seeds. `mcnemar` is
    the p of one run of each system, of these `seeds`; it is None for similarities.
    """

    system: str
    task: str
    metric: str
    difference: float
    resampled: np.ndarray
    examples: int
    mcnemar: float | None = None
    seeds: tuple[int, int] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % percentile interval over examples and seeds."""
        low, high = np.quantile(self.resampled, [0.025, 0.975])
        return float(low), float(high)

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.interval
        return low > 0 or high < 0


def compare_on_task(first: ScoredSystem, other: ScoredSystem, task: str) -> Difference:
    """Compare two systems on the same dev examples, matched by their ids."""
    kind = first.system.task(task).kind
    both = (first, other)

    def folder(scored: ScoredSystem, seed: int) -> str:
        return str(scored.system.cells[task, seed])

    folders = [[folder(one, seed) for seed in one.system.seeds(task)] for one in both]
    tables = {
        folder(one, seed): one.scores[task, seed] for one in both for seed in one.system.seeds(task)
    }
    table = aligned(tables, kind.predictions)
    assert table.targets is not None
    targets = table.targets
    predictions = dict(zip(tables, table.predictions, strict=True))
    score = METRICS[kind.main_metric].score

    def mean(several: Sequence[str], rows: np.ndarray) -> float:
        # A seed that was drawn several times is scored once.
        scores = {one: score(predictions[one][rows], targets[rows]) for one in set(several)}
        return float(np.mean([scores[one] for one in several]))

    def difference(rows: np.ndarray) -> float:
        return mean(folders[1], rows) - mean(folders[0], rows)

    several = [one.seeds(task) for one in both]
    draw = np.random.default_rng(0)  # the same seeds are drawn for every task of the systems

    def resampled(rows: np.ndarray) -> float:
        drawn = [draw.integers(len(one), size=len(one)) for one in several]
        chosen = drawn[:1] * 2 if several[0] == several[1] else drawn  # common seeds are paired
        before, after = ([folders[i][k] for k in chosen[i]] for i in range(2))
        return mean(after, rows) - mean(before, rows)

    seeds = seeds_to_pair(first.system.seeds(task), other.system.seeds(task))
    p = None
    if kind.main_metric == "accuracy":
        right = [predictions[folder(*run)] == targets for run in zip(both, seeds, strict=True)]
        p = mcnemar(*right)
    return Difference(
        system=other.system.name,
        task=task,
        metric=kind.main_metric,
        difference=difference(np.arange(len(targets))),
        resampled=paired_bootstrap(resampled, table.ids, crc32(task.encode())),
        examples=len(targets),
        mcnemar=p,
        seeds=seeds,
    )


def overall_difference(differences: Sequence[Difference]) -> Difference:
    """Combine a system's differences on the CS224N tasks into that of the overall score."""
    spans = {task: len(LEADERBOARD) * (1 - worst_value(one)) for task, one in LEADERBOARD.items()}
    share = {task: 1 / span for task, span in spans.items()}
    found = {one.task: one for one in differences if one.task in share}
    return Difference(
        system=differences[0].system,
        task=OVERALL,
        metric="score",
        difference=sum(share[task] * one.difference for task, one in found.items()),
        resampled=np.sum([share[task] * one.resampled for task, one in found.items()], axis=0),
        examples=sum(one.examples for one in found.values()),
    )


@dataclass(frozen=True)
class Comparison:
    """Systems, and the differences of all others from the first one."""

    systems: tuple[ScoredSystem, ...]
    differences: tuple[Difference, ...]

    @property
    def first(self) -> ScoredSystem:
        return self.systems[0]

    def of(self, system: ScoredSystem) -> list[Difference]:
        """Return the differences of a system, the overall one first."""
        return [one for one in self.differences if one.system == system.system.name]


def compare(systems: Sequence[ScoredSystem]) -> Comparison:
    """Compare each system with the first one on their common tasks, and overall if both have the
    three CS224N tasks."""
    first, found = systems[0], []
    names = [[one for one in first.system.tasks if one in s.system.tasks] for s in systems[1:]]
    with bar("compare", "task", sum(map(len, names)), passing=True) as progress:
        for other, common in zip(systems[1:], names, strict=True):
            several = []
            for task in common:
                several.append(compare_on_task(first, other, task))
                progress.update()
            if has_overall(first) and has_overall(other):
                found.append(overall_difference(several))
            found += several
    return Comparison(tuple(systems), tuple(found))


def has_overall(one: ScoredSystem) -> bool:
    """Whether every seed of the system has all three CS224N tasks."""
    seeds = {frozenset(one.metrics.get(task, {})) for task in LEADERBOARD}
    return len(seeds) == 1 and frozenset() not in seeds


def seeds_to_pair(first: Sequence[int], other: Sequence[int]) -> tuple[int, int]:
    """Return the smallest common seed twice, or the smallest of each if they share none."""
    common = set(first) & set(other)
    return (min(common), min(common)) if common else (min(first), min(other))


def relative_gain(first: ScoredSystem, other: ScoredSystem) -> float | None:
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


def paired_cells(first: ScoredSystem, other: ScoredSystem) -> list[float]:
    """Return differences of the main metric over the (task, seed) cells of both systems."""
    return [
        other.metrics[task][seed][metric] - first.metrics[task][seed][metric]
        for task in first.system.tasks
        for metric in [first.system.task(task).kind.main_metric]
        for seed in first.system.seeds(task)
        if seed in other.metrics.get(task, {})
    ]


def signed_ranks(
    first: ScoredSystem, others: Sequence[ScoredSystem]
) -> list[tuple[float | None, int]]:
    """Return Wilcoxon's p (Holm-adjusted) and the number of cells of each system."""
    cells = [paired_cells(first, other) for other in others]
    adjusted = holm([signed_rank(differences) for differences in cells])
    return [(p, len(found)) for p, found in zip(adjusted, cells, strict=True)]
