"""Estimated gain of each task of a subset from training with the others, as functions of arrays.

m tasks; a point is a model of a joint run, with R rounds of one batch per task. A gain is the share
by which the loss of a task is lower than without the other tasks: 0.02 is a loss lower by 2 %. That
of `gram` has no unit: it is a mean cosine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from multitask.affinity.linear_fits import SMALLEST, LinearFits, LinearPoint, Weights
from multitask.affinity.measures import Measures
from multitask.gram_matrices import cosines_of

SHARE = 0.01  # of the sum of the losses: what look-ahead steps on all tasks take from their own


class Estimator(Protocol):
    """An estimate of the gains in subsets of the tasks.

    `gains` returns (n, s) for n subsets of s tasks, given as indices (n, s). `weights` count the
    rounds of each point, for bootstrapping; None counts each round once.
    """

    def gains(self, subsets: np.ndarray, weights: Weights | None = None) -> np.ndarray: ...


def look_ahead(losses: np.ndarray, grams: np.ndarray) -> np.ndarray:
    """Return Z[r, i, j], the share by which a step on task i lowers the loss of task j: (R, m, m).

    Fifty et al. (2021) compute the loss after the step again; this is its first-order term,
    rate <g_i, g_j> / L_j. `losses` are (R, m), `grams` (R, P, m, m). All tasks of a round have one
    rate: by what each step takes from the loss of its own task, to first order, the sum of the
    losses falls by SHARE.
    """
    products = grams.sum(1)
    squares = np.trace(products, axis1=1, axis2=2)
    fall = SHARE * losses.sum(1)
    rates = np.divide(fall, squares, out=np.zeros_like(fall), where=squares > 0)
    return rates[:, None, None] * products / np.maximum(losses, SMALLEST)[:, None, :]


@dataclass(frozen=True)
class PairMeans:
    """Gains from effects (R, m, m) of tasks i on j at each point.

    The gain of a task is the mean effect of the other tasks of its subset (Fifty et al., 2021,
    section 3.3), and 0 if there are none.
    """

    effects: Sequence[np.ndarray]

    def gains(self, subsets: np.ndarray, weights: Weights | None = None) -> np.ndarray:
        several = weights or [np.ones(len(one)) for one in self.effects]
        total = sum(np.tensordot(w, one, 1) for w, one in zip(several, self.effects, strict=True))
        pairs = np.asarray(total) / sum(w.sum() for w in several)
        np.fill_diagonal(pairs, 0)
        chosen = pairs[subsets[:, :, None], subsets[:, None, :]]
        return chosen.sum(1) / max(1, subsets.shape[1] - 1)


def of_cosines(points: Sequence[Measures]) -> Estimator:
    return PairMeans([cosines_of(one.grams).mean(1) for one in points])


def of_look_ahead(points: Sequence[Measures]) -> Estimator:
    return PairMeans([look_ahead(one.losses, one.grams) for one in points])


def of_linear_fits(points: Sequence[Measures]) -> Estimator:
    return LinearFits.fitted([LinearPoint.of(one.losses, one.sketches) for one in points])


MEAN_OF_PAIRS = (
    "the gain of a task is the mean of those from the other tasks, so that a further task never "
    "raises the largest gain of a task"
)


@dataclass(frozen=True)
class EstimatorKind:
    """How an estimator is made from measures, and how its gains are shown and described.

    A gain is shown times `factor`, with `digits` after the point; `percent` if it is then one in
    per cent of a loss, else it is a cosine, the same in both directions. `group_rule` is the gain
    of a task in a group of more than two.
    """

    make: Callable[[Sequence[Measures]], Estimator]
    digits: int
    percent: bool
    meaning: str
    group_rule: str = MEAN_OF_PAIRS

    @property
    def factor(self) -> int:
        return 100 if self.percent else 1

    @property
    def unit(self) -> str:
        return "% of the loss" if self.percent else "mean cosine"


ESTIMATORS: Mapping[str, EstimatorKind] = {
    "gram": EstimatorKind(
        of_cosines,
        digits=3,
        percent=False,
        meaning="Gain: mean cosine of the gradients, over the parts of the encoder and the "
        "measured steps; below 0, the gradients are in conflict.",
    ),
    "lookahead": EstimatorKind(
        of_look_ahead,
        digits=3,
        percent=True,
        meaning="Gain: by how many per cent of it the loss of the task falls after one gradient "
        "step on the other task, to first order. All tasks have the same rate: the steps take "
        "together 1 % of the sum of the losses, each from the loss of its own task.",
    ),
    "linear": EstimatorKind(
        of_linear_fits,
        digits=2,
        percent=True,
        meaning="Gain: by how many per cent of it the estimated loss of the task, after further "
        "training with the other task, is below that after further training without it.",
        group_rule="gains are estimated for the whole group",
    ),
}


def bootstrap_weights(
    rounds: Sequence[int], seeds: Sequence[int], generator: np.random.Generator
) -> list[np.ndarray]:
    """Draw how often each round of each point counts, (R,) per point.

    With several seeds, seeds are drawn first, with replacement. At each point, as many even and as
    many odd rounds are drawn as there are.
    """
    distinct = sorted(set(seeds))
    drawn = list(generator.choice(distinct, len(distinct)))
    found = []
    for count, seed in zip(rounds, seeds, strict=True):
        weights = np.zeros(count)
        for half in (np.arange(0, count, 2), np.arange(1, count, 2)):
            weights[half] = generator.multinomial(len(half), np.full(len(half), 1 / len(half)))
        found.append(weights * drawn.count(seed))
    return found


def intervals(
    estimator: Estimator,
    subsets: np.ndarray,
    rounds: Sequence[int],
    seeds: Sequence[int],
    draws: int = 200,
) -> np.ndarray:
    """Return the ends (2, n, s) of the 95 % intervals of gains: percentiles of bootstrap draws.

    Their distances from the estimate are widened for the number of rounds: see `widening`.
    """
    generator = np.random.default_rng(0)
    several = [
        estimator.gains(subsets, bootstrap_weights(rounds, seeds, generator)) for _ in range(draws)
    ]
    ends, gains = np.percentile(several, (2.5, 97.5), axis=0), estimator.gains(subsets)
    return gains + widening(rounds) * (ends - gains)


def widening(rounds: Sequence[int]) -> float:
    """Return by how much percentiles of a mean of few rounds are too narrow.

    With h rounds in each half at a point, the bootstrap's variance is (h - 1) / h of the unbiased
    one, and a normal quantile stands for that of Student's t with the degrees of freedom of all
    halves (Hesterberg, 2015, "What Teachers Should Know About the Bootstrap", section 5.3). A half
    of a single round has no variance: 4 rounds at a point are the fewest.
    """
    from scipy.stats import norm, t

    halves = [one // 2 for one in rounds]
    freedom = 2 * sum(half - 1 for half in halves)
    half = min(halves)
    return float(np.sqrt(half / (half - 1)) * t.ppf(0.975, freedom) / norm.ppf(0.975))
