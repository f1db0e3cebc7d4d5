"""Whether two systems differ: tests and intervals over the same examples, or over paired cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

RESAMPLES = 2000
DECIMALS = 9  # of a difference of scores
FEWEST_PAIRS = 6  # fewer cannot reach p < 0.05 in a two-sided signed-rank test


def mcnemar(first_right: np.ndarray, second_right: np.ndarray) -> float:
    """Exact two-sided p that both systems are right equally often, of booleans (N,) each.

    Only examples on which one is right and the other wrong count (McNemar, 1947).
    """
    from scipy.stats import binomtest

    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def signed_rank(differences: Sequence[float]) -> float | None:
    """Two-sided p of Wilcoxon's test that paired cells differ by nothing; None below six pairs.

    Pairs without a difference take part in the ranking and are then left out (Pratt, 1959);
    differences are rounded, or 0.48 - 0.47 and 0.47 - 0.46 would not be the tie they are.
    """
    from scipy.stats import wilcoxon

    values = np.round(np.asarray(differences, np.float64), DECIMALS)
    if len(values) < FEWEST_PAIRS:
        return None
    if not values.any():
        return 1.0
    return float(wilcoxon(values, zero_method="pratt").pvalue)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p values adjusted for being several (Holm, 1979), in their order; None stays None."""
    tested = [i for i, p in enumerate(p_values) if p is not None]
    ranked = sorted(tested, key=lambda i: p_values[i] or 0.0)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(ranked):
        largest = max(largest, min(1.0, (len(ranked) - rank) * (p_values[i] or 0.0)))
        adjusted[i] = largest
    return adjusted


def paired_bootstrap(
    difference: Callable[[np.ndarray], float],
    ids: np.ndarray,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """95 % percentile interval of a difference of two scores over the same examples.

    `difference(rows)` gives it for a sample of rows. Examples are drawn in the order of their ids,
    so that the order in which they stand changes nothing (Efron and Tibshirani, 1993, section 13).
    """
    draw = np.random.default_rng(seed)
    order = np.argsort(ids, kind="stable")
    values = [difference(order[draw.integers(len(ids), size=len(ids))]) for _ in range(resamples)]
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
