"""When a comparison of two configurations is settled: intervals after each pair, and a verdict.

The parameter is the mean difference of the dev score, A minus B, in points (hundredths of the
score), over two populations: new seeds, and dev examples like the given ones. The observed mean
over n pairs has two errors, which are bounded separately:

1. New seeds on *these* examples. The differences of the pairs are independent draws with the mean
   d(dev). `mean_interval` contains d(dev) for all n at once with probability 1 - `OF_SEEDS`.
2. *These* examples in place of all like them. d(dev) differs from the mean over all examples by one
   draw, whatever the number of seeds. It is approximately normal, as a mean over many examples, and
   its deviation is that of the mean difference over paired resamples of the examples. This
   deviation includes the noise of n seeds and is therefore too large rather than too small.
   With probability 1 - `OF_EXAMPLES` the draw is within `half` = z * deviation.

By the union bound, the interval of 1, widened by `half` on both sides, contains the mean over new
seeds and new examples for all n at once with probability 1 - `ERROR`. Adding the widths instead of
their squares costs some width. It needs no independence, and no assumption on which part is larger.
With `examples="fixed"` the verdict is about new seeds on these examples only, and 1 has all of
`ERROR`.

Every wrong verdict (a sign that is not there, or a difference of at least the margin called
smaller) implies that the interval misses the true mean. Therefore at most 5 % of comparisons end
with a wrong verdict, whatever the true difference is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, get_args

import numpy as np

from studies.until_sure.confidence import FEWEST, mean_interval

Population = Literal["sampled", "fixed"]
ERROR = 0.05
OF_EXAMPLES = 0.01  # the normal quantile hardly depends on it, the interval of few seeds does
OF_SEEDS = ERROR - OF_EXAMPLES
QUANTILE = 2.5758293035489004  # of the normal distribution, for OF_EXAMPLES on both sides
A_BETTER, B_BETTER = "A is better", "B is better"
SMALL, OPEN = "the difference is below the margin", "not settled"


@dataclass(frozen=True)
class Rule:
    """The margin in points, the population, and when to give up.

    `resolution` is the share of one dev example in the score, in points. The budget is in seconds.
    """

    margin: float
    examples: Population = "sampled"
    resolution: float = 0.0
    most_seeds: int = 20
    budget: float | None = None

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with values out of their range."""
        if not 0 < self.margin < inf:
            yield f"margin: expected points above 0, found {self.margin!r}"
        if self.budget is not None and not self.budget > 0:
            yield f"budget: expected seconds above 0, found {self.budget!r}"
        if self.most_seeds < FEWEST:
            line = f"expected a whole number from {FEWEST}, the pairs of the first interval"
            yield f"most_seeds: {line}, found {self.most_seeds!r}"
        if self.examples not in get_args(Population):
            known = ", ".join(get_args(Population))
            yield f"examples: expected one of {known}, found {self.examples!r}"


@dataclass(frozen=True)
class Look:
    """Intervals of the difference A - B after a number of pairs, in points.

    `seeds` is over new seeds on these examples; `half` is what other examples add on both sides,
    and `least_half` an estimate of it without the noise of the seeds, with any number of them.
    """

    pairs: int
    difference: float
    seeds: tuple[float, float]
    half: float
    least_half: float

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the verdict."""
        return self.seeds[0] - self.half, self.seeds[1] + self.half


@dataclass(frozen=True)
class Conclusion:
    """All looks, the verdict, and why the comparison ended; `None` if it goes on."""

    looks: tuple[Look, ...]
    verdict: str
    reason: str | None


def look(differences: Sequence[float], covariance: np.ndarray, rule: Rule) -> Look:
    """Return the intervals of n differences in points.

    `covariance` (n, n) is that of the differences over paired resamples of the examples.
    """
    fixed = rule.examples == "fixed"
    alpha = ERROR if fixed else OF_SEEDS
    # Differences of shares are multiples of the resolution. If each difference were plus or minus
    # one multiple with equal probability, several equal ones would have a deviation of 0. With half
    # a multiple in its place, a verdict needs seven equal ones, whose probability is 1.6 %.
    seeds = mean_interval(differences, alpha, smallest=rule.resolution / 2)
    half, least_half = (0.0, 0.0) if fixed else example_halves(covariance)
    return Look(len(differences), float(np.mean(differences)), seeds, half, least_half)


def example_halves(covariance: np.ndarray) -> tuple[float, float]:
    """Return z times the deviation of the mean difference of n seeds, and of infinitely many.

    The mean of the covariances (n, n) is the variance over examples of the mean of n differences.
    Those between two seeds lack the noise of single seeds.
    """
    n = len(covariance)
    between = (covariance.sum() - np.trace(covariance)) / (n * (n - 1)) if n > 1 else 0.0
    variances = max(float(covariance.mean()), 0.0), max(float(between), 0.0)
    whole, least = (QUANTILE * variance**0.5 for variance in variances)
    return whole, least


def verdict(one: Look, margin: float) -> str | None:
    """Return what a look settles, or None."""
    low, high = one.interval
    if low > 0:
        return A_BETTER
    if high < 0:
        return B_BETTER
    return SMALL if -margin <= low and high <= margin else None


def no_seed_settles(one: Look, margin: float) -> bool:
    """Return whether the dev set is too small for a verdict, with any number of further seeds.

    For every difference in the interval over seeds, other examples could change its sign, or lift
    it above the margin. Giving up for this reason makes no verdict wrong.
    """
    low, high = one.seeds
    largest = max(abs(low), abs(high))
    smallest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    return largest <= one.least_half and smallest + one.least_half > margin


def conclude(
    differences: Sequence[float], covariance: np.ndarray, seconds: Sequence[float], rule: Rule
) -> Conclusion:
    """Return the state of a comparison after n pairs, which took `seconds` (n,) each.

    A settled look ends it: later pairs are ignored. A pair is not begun if a pair of mean duration
    would exceed the budget.
    """
    looks = []
    for n in range(FEWEST, len(differences) + 1):
        looks.append(look(differences[:n], covariance[:n, :n], rule))
        if (found := verdict(looks[-1], rule.margin)) is not None:
            return Conclusion(tuple(looks), found, "settled")
        if rule.examples == "sampled" and no_seed_settles(looks[-1], rule.margin):
            return Conclusion(tuple(looks), OPEN, "few examples")
    n, spent = len(differences), sum(seconds)
    reason = None
    if n >= rule.most_seeds:
        reason = "most seeds"
    elif n and rule.budget is not None and spent + spent / n > rule.budget:
        reason = "budget"
    return Conclusion(tuple(looks), OPEN, reason)
