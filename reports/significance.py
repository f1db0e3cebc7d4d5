"""Tests of paired differences, their adjustment for several tests, and the paired bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

RESAMPLES = 2000
DECIMALS = 9  # to which differences of scores are rounded
FEWEST_FOR_T = 3  # pairs of a paired t-test
FEWEST_RANKS = 10  # pairs of a signed-rank test in place of a t-test
FEWEST_PAIRS = 6  # fewer cannot reach p < 0.05 in a two-sided signed-rank test


def mcnemar(first_right: np.ndarray, second_right: np.ndarray) -> float:
    """Compute McNemar's exact two-sided p for two systems (McNemar, 1947).

    The arguments (N,) are true for right predictions. Only examples where they differ count.
    """
    from scipy.stats import binomtest

    first, second = np.asarray(first_right, bool), np.asarray(second_right, bool)
    only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def signed_rank(differences: Sequence[float] | np.ndarray) -> float | None:
    """Compute the two-sided p of Wilcoxon's signed-rank test; None for NaN or fewer than six pairs.

    Pairs without a difference are ranked and then left out (Pratt, 1959). The distribution of the
    rank sum is exact, with ties, too. Differences are rounded, because 0.48 - 0.47 and 0.47 - 0.46
    would not be a tie otherwise.
    """
    from scipy.stats import rankdata

    values = np.round(np.asarray(differences, np.float64), DECIMALS)
    if len(values) < FEWEST_PAIRS or np.isnan(values).any():
        return None
    ranks = np.round(2 * rankdata(np.abs(values))).astype(int)[values != 0]  # twice: ties are whole
    chances = np.ones(1)  # of each sum of the ranks with a positive sign
    for rank in ranks:
        chances = (np.pad(chances, (0, rank)) + np.pad(chances, (rank, 0))) / 2
    positive = ranks[values[values != 0] > 0].sum()
    smaller = min(positive, ranks.sum() - positive)
    return min(1.0, float(2 * chances[: smaller + 1].sum()))


def paired_p(differences: Sequence[float]) -> float | None:
    """Compute the two-sided p of paired differences; None for fewer than three pairs.

    From ten pairs on this is Wilcoxon's signed-rank test, below it is the paired t-test, because
    ranks of so few pairs can hardly reach p < 0.05 after an adjustment. Equal differences, of which
    t is not defined, have the p of the sign test.
    """
    from scipy.stats import ttest_1samp

    values = np.round(np.asarray(differences, np.float64), DECIMALS)
    if len(values) >= FEWEST_RANKS:
        return signed_rank(values)
    if len(values) < FEWEST_FOR_T:
        return None
    if np.ptp(values) == 0:
        return 2.0 ** (1 - len(values)) if values[0] else 1.0
    return float(ttest_1samp(values, 0.0).pvalue)


def p_text(p: float, digits: int = 4) -> str:
    """Return `0.0431`, or `< 0.0001` for a smaller one."""
    smallest = 10.0**-digits
    return f"< {smallest:.{digits}f}" if p < smallest else f"{p:.{digits}f}"


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p values for multiple tests (Holm, 1979), in their order; None stays None."""
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
) -> np.ndarray:
    """Compute a difference of two scores on bootstrap samples of the examples: (resamples,).

    `difference(rows)` computes it for a sample of rows. Samples are drawn from the examples sorted
    by id, so that their order changes nothing (Efron and Tibshirani, 1993, section 13).
    """
    draw = np.random.default_rng(seed)
    order = np.argsort(ids, kind="stable")
    samples = (order[draw.integers(len(ids), size=len(ids))] for _ in range(resamples))
    return np.array([difference(rows) for rows in samples])
