"""A confidence sequence for the mean of differences of unknown variance.

Let x_1, x_2, ... be independent N(mu, sigma^2), both unknown: here the differences of two
configurations' dev scores, one for each seed. For every candidate mean m, the statistic

    G_n(m) = sqrt(k / (n + k)) * (((n + k) V_n) / ((n + k) V_n - S_n^2)) ^ (n / 2)
    with S_n = sum of (x_i - m), V_n = sum of (x_i - m)^2

is a ratio of likelihoods of the scaled differences, (x_i - m) / |x_1 - m|: under a mixture of
standardised means, mu / sigma ~ N(0, 1 / k), to that under mean 0. Both sides are mixed over sigma
with the measure d sigma / sigma (the right Haar measure), so that G_n depends neither on sigma nor
on the unit of the scores. If m is the true mean, G_n(m) is a nonnegative martingale that begins
with G_1 = 1. By Ville's inequality, P(G_n(mu) >= 1 / alpha for any n) <= alpha. The interval of n
differences is the set of all m with G_n(m) < 1 / alpha. With probability 1 - alpha it contains mu
for all n at once, however often one looks, and whatever makes one stop.

The interval is the mean plus or minus

    sqrt(Q / n * (r - 1) (n + k) / ((n + k) - r k)),  r = ((n + k) / (k alpha^2)) ^ (1 / n),

where Q is the sum of the squared deviations from the mean. It is unbounded while the denominator is
not positive: two differences, of which each could be any multiple of sigma, exclude almost nothing.

References: Lai (1976), "On confidence sequences", with a flat mixture; Wang and Ramdas (2025),
"Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance",
Sequential Analysis 44, with the Gaussian mixture that is used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

# The mixture's k: standardised differences of a size of 1 / sqrt(0.05) = 4.5 deviations. Among
# 0.002 to 0.3 it has nearly the shortest intervals of three to five pairs (at most 7 % longer than
# the shortest), and at ten pairs one that is 11 % longer. It must not be chosen after the scores.
PRECISION = 0.05
FEWEST = 3  # differences of the first bounded interval with this k


def half_width(n: int, deviation: float, alpha: float, k: float = PRECISION) -> float:
    """Return half of the interval's length for n differences with a standard `deviation`.

    The deviation has the denominator n - 1.
    """
    if n < 2:
        return math.inf
    ratio = ((n + k) / (k * alpha * alpha)) ** (1 / n)
    denominator = (n + k) - ratio * k
    if denominator <= 0:
        return math.inf
    return deviation * math.sqrt((n - 1) / n * (ratio - 1) * (n + k) / denominator)


def mean_interval(
    differences: Sequence[float], alpha: float, smallest: float = 0.0
) -> tuple[float, float]:
    """Return the interval of the mean of differences (n,), valid for all n at once.

    A standard deviation below `smallest` is replaced by it. Scores that are shares of N examples
    may agree by their rounding, and a deviation of 0 would make the interval a point. A larger
    deviation only widens the interval.
    """
    x = np.asarray(differences, np.float64)
    if len(x) < 2:
        return -math.inf, math.inf
    half = half_width(len(x), max(float(np.std(x, ddof=1)), smallest), alpha)
    mean = float(np.mean(x))
    return mean - half, mean + half
