"""Groups of tasks: each task is served by one of at most K models, each trained on a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

EXACT = 8  # most tasks of the exact search
TIE = 1e-12  # gains that differ by less are equal

Tasks = tuple[int, ...]
Values = Sequence[float] | np.ndarray  # one per task of a subset


@dataclass(frozen=True)
class Group:
    """A model trained on `tasks`, which predicts those in `serves`."""

    tasks: Tasks
    serves: Tasks


@dataclass(frozen=True)
class Grouping:
    """Groups that serve each task once, and the sum of the gains of the served tasks."""

    groups: tuple[Group, ...]
    total: float


def subsets_of(tasks: int) -> list[Tasks]:
    """Return all subsets with one task or more, the smallest first."""
    sizes = range(1, tasks + 1)
    return [chosen for size in sizes for chosen in combinations(range(tasks), size)]


def exact_groupings(gains: Mapping[Tasks, Values], most: int) -> list[Grouping]:
    """Return the groupings with the largest total of at most 1, 2, ... `most` groups.

    `gains` has those of the tasks of every subset. A group may also train tasks that another one
    serves (Fifty et al., 2021, section 3.3). Of equal totals, fewer groups and smaller ones are
    chosen. The search goes over the sets of tasks that are served: the best total of k groups for
    a set is that of one group for a part of it, and of k - 1 groups for the rest.
    """
    count = max(map(max, gains)) + 1
    served = best_group_by_served(gains)
    every = 2**count - 1
    best: list[dict[int, Grouping]] = [{0: Grouping((), 0.0)}]
    for _ in range(min(most, count)):
        before, now = best[-1], dict(best[-1])
        for chosen in range(1, every + 1):
            first = chosen & -chosen  # the first task is in one of the parts: no order of groups
            for part in parts_of(chosen):
                if part & first and (rest := before.get(chosen ^ part)) is not None:
                    group, gain = served[part]
                    total = gain + rest.total
                    if chosen not in now or total > now[chosen].total + TIE:
                        now[chosen] = Grouping((group, *rest.groups), total)
        best.append(now)
    return [one[every] for one in best[1:]]


def best_group_by_served(gains: Mapping[Tasks, Values]) -> dict[int, tuple[Group, float]]:
    """Return for each set of served tasks, as bits, the group with the largest sum of gains."""
    found: dict[int, tuple[Group, float]] = {}
    for tasks in sorted(gains, key=lambda one: (len(one), one)):  # the smallest first
        by_bit = dict(zip((1 << task for task in tasks), gains[tasks], strict=True))
        for part in parts_of(sum(by_bit)):
            total = float(sum(gain for bit, gain in by_bit.items() if bit & part))
            if part not in found or total > found[part][1] + TIE:
                serves = tuple(task for task in tasks if part >> task & 1)
                found[part] = Group(tasks, serves), total
    return found


def parts_of(bits: int) -> Iterator[int]:
    """Yield the non-empty subsets of a set of bits."""
    part = bits
    while part:
        yield part
        part = (part - 1) & bits


def linkage_of(pairs: np.ndarray) -> np.ndarray:
    """Return the average linkage of tasks (SciPy's m - 1 rows) from gains `pairs` (m, m).

    The distance of two tasks is the largest mean of both directions, minus theirs.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    both = (pairs + pairs.T) / 2
    distances = both[~np.eye(len(both), dtype=bool)].max() - both
    np.fill_diagonal(distances, 0)
    return linkage(squareform(distances, checks=False), "average")


def clustered_groupings(
    pairs: np.ndarray, gains: Callable[[Tasks], Values], most: int
) -> list[Grouping]:
    """Return the groupings of at most 1, 2, ... `most` groups, from cuts of the linkage.

    Each group serves the tasks that it trains. Of more groups than k, the cut with the largest
    total of `gains` is chosen.
    """
    from scipy.cluster.hierarchy import fcluster

    tree, found = linkage_of(pairs), list[Grouping]()
    for k in range(1, min(most, len(pairs)) + 1):
        labels = fcluster(tree, k, "maxclust")
        clusters = [tuple(np.flatnonzero(labels == one).tolist()) for one in np.unique(labels)]
        groups = tuple(Group(one, one) for one in sorted(clusters))
        cut = Grouping(groups, float(sum(np.sum(gains(one)) for one in clusters)))
        found.append(cut if not found or cut.total > found[-1].total + TIE else found[-1])
    return found


def subset_means(gains: Mapping[Tasks, Values], tasks: int) -> np.ndarray:
    """Return the affinities (m, m): [i, j] is j's mean gain in the subsets that contain i and j.

    The diagonal has its mean over all subsets (Li et al., 2024). A pair in no subset is NaN.
    """
    totals, counts = np.zeros((tasks, tasks)), np.zeros((tasks, tasks))
    for chosen, values in gains.items():
        place = np.ix_(chosen, chosen)
        totals[place] += np.asarray(values)[None, :]
        counts[place] += 1
    return np.divide(totals, counts, out=np.full_like(totals, np.nan), where=counts > 0)


def random_subsets(tasks: int, count: int, size: int, seed: int) -> list[Tasks]:
    """Draw `count` subsets of `size` tasks, and add the pairs of tasks that are in none of them."""
    generator = np.random.default_rng(seed)
    drawn = [tuple(sorted(generator.permutation(tasks)[:size].tolist())) for _ in range(count)]
    seen = {pair for one in drawn for pair in combinations(one, 2)}
    return drawn + [pair for pair in combinations(range(tasks), 2) if pair not in seen]
