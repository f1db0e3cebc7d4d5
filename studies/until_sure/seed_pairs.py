"""Pairs of runs: two configurations with the same seed, scored on the same dev examples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common.errors import SettingsError
from multitask.settings.config import RunConfig
from multitask.storage.stored_runs import read_run
from reports.comparison import compare_on_task
from reports.scored_systems import ScoredSystem, score_systems
from reports.systems import group_runs
from tasks.base import Task
from tasks.metrics import OVERALL, span_in_mean, worst_value

POINTS = 100  # points of a score: hundredths


@dataclass(frozen=True)
class DevScore:
    """The score that is compared: main metrics of tasks, and the weight of each in points.

    One task has its own metric. Several have the mean of their metrics, each scaled to [0, 1]; of
    the three CS224N tasks this is the overall score (BEES, Eq. 6).
    """

    name: str
    metrics: Mapping[str, str]
    weights: Mapping[str, float]

    def of(self, values: Mapping[str, float]) -> float:
        """Return the score in points from the main metric of each task."""
        several = len(self.metrics) > 1
        worst = {t: worst_value(m) if several else 0.0 for t, m in self.metrics.items()}
        return sum(self.weights[task] * (values[task] - worst[task]) for task in self.metrics)

    def resolution(self, examples: Mapping[str, int]) -> float:
        """Return the share of a dev example in the score, in points; of tasks, root of squares."""
        return float(np.sqrt(sum((w / examples[t]) ** 2 for t, w in self.weights.items())))


def dev_score(tasks: Mapping[str, Task], chosen: str | None = None) -> DevScore:
    """Return the score over the common tasks, or over the `chosen` one."""
    names = [*tasks, OVERALL] if len(tasks) > 1 else [*tasks]
    if chosen is not None and chosen not in names:
        raise SettingsError(f"score: expected one of {', '.join(names)}, found {chosen!r}")
    if chosen not in (None, OVERALL):
        tasks = {chosen: tasks[chosen]}
    return score_of({name: task.kind.main_metric for name, task in tasks.items()})


def score_of(metrics: Mapping[str, str]) -> DevScore:
    """Return the score that consists of a metric of each task."""
    if len(metrics) == 1:
        ((task, metric),) = metrics.items()
        return DevScore(f"{task} {metric}", metrics, {task: float(POINTS)})
    weights = {t: POINTS / span_in_mean(m, len(metrics)) for t, m in metrics.items()}
    return DevScore(OVERALL, metrics, weights)


@dataclass(frozen=True)
class SeedPair:
    """One seed of both configurations: the main metric of each task and the seconds of each run.

    `resampled` (R,) are differences of the score, A minus B in points, on bootstrap samples of the
    examples, which are the same for every seed. `examples` has the number of examples of each task
    and a checksum of their ids.
    """

    seed: int
    metrics: Mapping[str, Mapping[str, float]]
    seconds: Mapping[str, float]
    resampled: np.ndarray
    examples: Mapping[str, tuple[int, str]]


def score_pair(folders: Mapping[str, Path], seed: int, score: DevScore) -> SeedPair:
    """Read two finished runs, named A and B, and score them on the dev examples of both."""
    runs = {name: read_run(folder) for name, folder in folders.items()}
    scored = score_systems(group_runs(list(runs.items())))
    resampled, examples = np.zeros(1), {}
    for task, weight in score.weights.items():
        found = compare_on_task(scored[1], scored[0], task)  # A minus B
        resampled = resampled + weight * found.resampled
        examples[task] = found.examples, id_checksum(scored[0], task, seed)
    return SeedPair(
        seed=seed,
        metrics={
            one.system.name: {t: one.metrics[t][seed][m] for t, m in score.metrics.items()}
            for one in scored
        },
        seconds={name: run_seconds(run.metrics or {}) for name, run in runs.items()},
        resampled=resampled,
        examples=examples,
    )


def id_checksum(scored: ScoredSystem, task: str, seed: int) -> str:
    ids = "\n".join(sorted(scored.scores[task, seed].ids.tolist()))
    return hashlib.sha256(ids.encode()).hexdigest()


def run_seconds(metrics: Mapping[str, float]) -> float:
    """Return the duration of a run; after a resume, `seconds` is only that of the last part."""
    return float(max(metrics.get("seconds", 0.0), metrics.get("training_seconds", 0.0)))


def resampled_covariance(pairs: Sequence[SeedPair]) -> np.ndarray:
    """Return the covariance (n, n) of the pairs' differences over resamples of the examples."""
    return np.atleast_2d(np.cov(np.stack([one.resampled for one in pairs])))


def check_comparable(first: RunConfig, other: RunConfig) -> tuple[str, ...]:
    """Return the common tasks; raise SettingsError if two configurations cannot form pairs."""
    for name, config in (("A", first), ("B", other)):
        if config.pretrains:
            raise SettingsError(f"{name}: expected a run of tasks, found one of mode pretrain")
    common = tuple(task for task in first.main_tasks if task in other.main_tasks)
    if not common:
        names = [", ".join(one.main_tasks) for one in (first, other)]
        raise SettingsError(f"tasks: expected a task in common, found {names[0]} and {names[1]}")
    one, two = first.to_json(), other.to_json()
    for key in ("data", "dev_limit", "protocol"):
        if one.get(key) != two.get(key):
            raise SettingsError(
                f"{key}: expected the same in A and B, found {one.get(key)!r} and {two.get(key)!r}"
            )
    for task in common:
        if first.own_tasks.get(task) != other.own_tasks.get(task):
            raise SettingsError(f"{task}: expected the same description in A and B, found two")
    return common
