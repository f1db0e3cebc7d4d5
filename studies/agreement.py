"""How well predicted gains agree with real ones, with intervals from bootstrapping subsets.

Pairs are (n, 3): predicted gain, real gain and index of the task. A draw repeats some of them and
leaves out others; `counts` (draws, n) says how often it has each, so that a measure of all draws is
a few array operations. A measure returns a value per draw, (draws,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from warnings import catch_warnings, simplefilter

import numpy as np

DRAWS = 1000  # bootstrap samples of the subsets

Measure = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of pairs and counts


def with_interval(by_subset: Sequence[np.ndarray], measure: Measure) -> tuple[float, float, float]:
    """Return a measure of all pairs and its 95 % interval, from bootstrapping the subsets."""
    generator, subsets = np.random.default_rng(0), len(by_subset)
    drawn = [
        np.bincount(generator.integers(0, subsets, subsets), None, subsets) for _ in range(DRAWS)
    ]
    counts = np.array([np.ones(subsets, int), *drawn]).repeat([len(one) for one in by_subset], 1)
    value, *draws = measure(np.concatenate(by_subset), counts)
    low, high = np.nanpercentile(draws, (2.5, 97.5))
    return float(value), float(low), float(high)


def overall_rank(pairs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the rank correlations of predicted and real gains."""
    return rank_correlations(pairs[:, 0], pairs[:, 1], counts)


def within_tasks(pairs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the means of the rank correlations within each task, of those with three pairs."""
    return mean_of_tasks(rank_correlations, pairs, counts)


def gain_of_choice(pairs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return what it is worth to choose a task's partners by a prediction, in points.

    It is the mean real gain of the third of the task's subsets with the highest predictions, less
    that of the lowest third; the mean over the tasks with three pairs. Of equal predictions, the
    first pair counts as the highest.
    """
    return mean_of_tasks(highest_less_lowest, pairs, counts)


def mean_of_tasks(
    measure: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    pairs: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray:
    """Return the means of a measure of each task's gains, of the tasks with three pairs.

    NaN where no task has three.
    """
    found = []
    for task in np.unique(pairs[:, 2]):
        own = pairs[:, 2] == task
        (predicted, real, _), several = pairs[own].T, counts[:, own]
        enough = several.sum(1) > 2
        found.append(np.full(len(counts), np.nan))
        found[-1][enough] = measure(predicted, real, several[enough])
    with catch_warnings():
        simplefilter("ignore", RuntimeWarning)  # a mean of nothing is NaN, as promised
        return np.nanmean(found, axis=0)


def rank_correlations(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return Spearman's correlation of x and y (n,) in each draw; 0 if either is constant."""
    first, second = (centred_ranks(values, counts) for values in (x, y))
    covariance = (counts * first * second).sum(1)
    scale = np.sqrt((counts * first**2).sum(1) * (counts * second**2).sum(1))
    return np.divide(covariance, scale, out=np.zeros(len(counts)), where=scale > 0)


def centred_ranks(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the ranks (draws, n) of values (n,) less their mean; equal values share a rank."""
    distinct, place = np.unique(values, return_inverse=True)
    several = counts @ (place[:, None] == np.arange(len(distinct)))
    ranks = several.cumsum(1) - (several - 1) / 2
    return ranks[:, place] - (counts.sum(1, keepdims=True) + 1) / 2


def highest_less_lowest(predicted: np.ndarray, real: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the mean real gain of the highest third of predictions, less that of the lowest."""
    order = np.argsort(-predicted, kind="stable")
    real, counts = real[order], counts[:, order]
    third = counts.sum(1, keepdims=True) // 3
    upper = np.diff(np.minimum(counts.cumsum(1), third), prepend=0)
    lower = np.diff(np.minimum(counts[:, ::-1].cumsum(1), third), prepend=0)[:, ::-1]
    return ((upper - lower) * real).sum(1) / third[:, 0]
