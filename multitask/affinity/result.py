"""Estimates of all gains and the groups that follow from them, as arrays and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import Any

import numpy as np

from multitask.affinity.estimators import (
    ESTIMATORS,
    Estimator,
    PairMeans,
    intervals,
)
from multitask.affinity.groups import (
    EXACT,
    Grouping,
    Tasks,
    clustered_groupings,
    exact_groupings,
    random_subsets,
    subset_means,
    subsets_of,
)
from multitask.affinity.measures import Measures
from multitask.gram_matrices import cosines_of

SUBSETS, SIZE = 200, 4  # random subsets of more than EXACT tasks, and their size


def sign_of(low: float, high: float) -> int:
    """Return 1 for an interval above 0, -1 for one below, 0 for one that contains 0."""
    return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Promise:
    """Estimated gain of a task over a model of its own, with the ends of its 95 % interval."""

    gain: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 for a gain, -1 for a loss, 0 if the interval contains 0."""
        return sign_of(self.low, self.high)


@dataclass(frozen=True)
class Estimate:
    """The gains by one estimator.

    `pairs[i, j]` (m, m) is the gain of j from training with i only, 0 on the diagonal; `ends`
    (2, m, m) are its 95 % interval. `subsets` has the gains of further subsets: of all up to eight
    tasks, else of random ones. `affinities[i, j]` (m, m) is the mean gain of j in those with i.
    `groupings` have at most 1, 2, ... groups.
    """

    estimator: Estimator
    pairs: np.ndarray
    ends: np.ndarray
    subsets: Mapping[Tasks, np.ndarray]
    affinities: np.ndarray
    groupings: Sequence[Grouping]
    rounds: Sequence[int]  # measured at each point
    seeds: Sequence[int]  # of each point

    def interval(self, tasks: Tasks) -> np.ndarray:
        """Return the ends (2, s) of the 95 % intervals of the gains in a subset of s tasks."""
        subset = np.array([tasks])
        return intervals(self.estimator, subset, self.rounds, self.seeds)[:, 0]

    @property
    def best(self) -> Grouping:
        """The grouping with the largest total gain, of the fewest groups."""
        return max(self.groupings, key=lambda one: one.total)


@dataclass(frozen=True)
class Affinity:
    """The result of `measure_affinity`.

    `estimator` is the name of the chosen one among `estimates`. `cosines` (P, m, m) are means by
    part of the encoder, from `rounds` measured batches per task in all, and `cosine_ends`
    (2, P, m, m) their 95 % intervals. `training_seconds` and `measuring_seconds` are those of all
    joint runs.
    """

    tasks: tuple[str, ...]
    estimator: str
    estimates: Mapping[str, Estimate]
    parts: tuple[str, ...]
    cosines: np.ndarray
    cosine_ends: np.ndarray
    seeds: tuple[int, ...]
    rounds: int
    training_seconds: float
    measuring_seconds: float

    @property
    def chosen(self) -> Estimate:
        """The estimate by the chosen estimator."""
        return self.estimates[self.estimator]

    def gains(self, *tasks: str, estimator: str | None = None) -> dict[str, float]:
        """Return the estimated gain of each task of a subset, by the chosen or another estimator.

        Raise ValueError for no task, a repeated one, one that was not measured, and an unknown
        estimator.
        """
        chosen = estimator or self.estimator
        for found, known in (*((name, self.tasks) for name in tasks), (chosen, self.estimates)):
            if found not in known:
                raise ValueError(f"expected one of {', '.join(known)}, found {found!r}")
        if len(set(tasks)) < max(1, len(tasks)):
            raise ValueError(f"expected different tasks, found {', '.join(tasks) or 'none'}")
        places = [self.tasks.index(name) for name in tasks]
        one = self.estimates[chosen].estimator
        return dict(zip(tasks, one.gains(np.array([places]))[0].tolist(), strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return all estimates, gains as numbers by the names of tasks, without `cosine_ends`."""
        return {
            "tasks": list(self.tasks),
            "estimator": self.estimator,
            "seeds": list(self.seeds),
            "rounds": self.rounds,
            "training_seconds": self.training_seconds,
            "measuring_seconds": self.measuring_seconds,
            "cosines_by_part": dict(zip(self.parts, rounded(self.cosines), strict=True)),
            "estimates": {name: self.estimate_json(one) for name, one in self.estimates.items()},
        }

    def estimate_json(self, one: Estimate) -> dict[str, Any]:
        names = self.tasks

        def named(tasks: Tasks) -> list[str]:
            return [names[task] for task in tasks]

        return {
            "gain_of_column_with_row": rounded(one.pairs),
            "interval_95": rounded(one.ends),
            "mean_gain_of_column_with_row": rounded(one.affinities),
            "subsets": [
                dict(zip(named(tasks), rounded(gains), strict=True))
                for tasks, gains in one.subsets.items()
            ],
            "groupings": [
                {
                    "groups": [
                        {"train": named(group.tasks), "serve": named(group.serves)}
                        for group in grouping.groups
                    ],
                    "total_gain": rounded(np.array(grouping.total)),
                }
                for grouping in one.groupings
            ],
        }


def rounded(values: np.ndarray) -> Any:
    """Return nested lists of the values with six significant digits."""
    return np.vectorize(lambda value: float(f"{value:.6g}"), otypes=[float])(values).tolist()


def estimate(
    estimator: Estimator, points: Sequence[Measures], seeds: Sequence[int], groups: int
) -> Estimate:
    """Return the gains of pairs and subsets, and groupings of at most `groups` groups."""
    tasks = points[0].losses.shape[1]
    pairs = np.array(list(combinations(range(tasks), 2)))
    rounds = [len(one.losses) for one in points]
    ends = intervals(estimator, pairs, rounds, seeds)
    matrix = as_matrix(pairs, estimator.gains(pairs), tasks)
    exact = tasks <= EXACT
    chosen = subsets_of(tasks) if exact else random_subsets(tasks, SUBSETS, SIZE, seed=0)
    subsets = gains_by_subset(estimator, chosen)
    affinities = subset_means(subsets, tasks)
    if exact:
        groupings = exact_groupings(subsets, groups)
    else:
        groupings = clustered_groupings(
            affinities, lambda one: estimator.gains(np.array([one]))[0], groups
        )
    both = np.stack([as_matrix(pairs, one, tasks) for one in ends])
    return Estimate(estimator, matrix, both, subsets, affinities, groupings, rounds, seeds)


def cosine_ends(cosines: Sequence[np.ndarray], seeds: Sequence[int]) -> np.ndarray:
    """Return the 95 % intervals (2, P, m, m) of mean cosines by part.

    `cosines` are those of each point (R, P, m, m).
    """
    parts, tasks = cosines[0].shape[1:3]
    pairs = np.array(list(combinations(range(tasks), 2)))
    rounds, found = [len(one) for one in cosines], []
    for part in range(parts):
        means = PairMeans([one[:, part] for one in cosines])
        ends = intervals(means, pairs, rounds, seeds)
        found.append(np.stack([as_matrix(pairs, one, tasks) for one in ends]))
    return np.stack(found, 1)


def as_matrix(pairs: np.ndarray, gains: np.ndarray, tasks: int) -> np.ndarray:
    """Return (m, m) with the gain of the column's task in each pair (n, 2) at [other, task]."""
    found = np.zeros((tasks, tasks))
    found[pairs[:, 0], pairs[:, 1]] = gains[:, 1]
    found[pairs[:, 1], pairs[:, 0]] = gains[:, 0]
    return found


def gains_by_subset(estimator: Estimator, subsets: Sequence[Tasks]) -> dict[Tasks, np.ndarray]:
    """Return the gains of the tasks of each subset."""
    found: dict[Tasks, np.ndarray] = {}
    for _, several in groupby(sorted(set(subsets), key=lambda one: (len(one), one)), key=len):
        same = list(several)
        found |= dict(zip(same, estimator.gains(np.array(same)), strict=True))
    return found


def affinity_of(
    tasks: Sequence[str],
    points: Sequence[Measures],
    seeds: Sequence[int],
    estimator: str,
    groups: int,
    training_seconds: float,
) -> Affinity:
    """Return all estimates of the measures of some points; `seeds` has the seed of each point."""
    found = {
        name: estimate(kind.make(points), points, seeds, groups)
        for name, kind in ESTIMATORS.items()
    }
    cosines = [cosines_of(one.grams) for one in points]
    return Affinity(
        tasks=tuple(tasks),
        estimator=estimator,
        estimates=found,
        parts=points[0].parts,
        cosines=np.concatenate(cosines).mean(0),
        cosine_ends=cosine_ends(cosines, seeds),
        seeds=tuple(dict.fromkeys(seeds)),
        rounds=sum(len(one.losses) for one in points),
        training_seconds=round(training_seconds, 3),
        measuring_seconds=round(sum(one.seconds for one in points), 3),
    )
