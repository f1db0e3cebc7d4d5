"""Combiners that need only the losses, and the plain sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from common.random_generators import generator
from common.settings import Positive, setting
from multitask.combiners.base import Combined, Combiner, CombinerState, Setup, WithPreference

RATE = 0.01  # of the log-variances of uncertainty: they settle in about a hundred steps
LARGEST = 20.0  # largest absolute value of a log-variance
SMALLEST = 1e-8  # loss inside logarithms and quotients


class Sum(Combiner, name="sum"):
    """Sum of the losses: the weight of every objective is 1 (Bi et al., 2022)."""

    needs_rows = False
    for_one_objective = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(np.ones(len(drawn)), "summed")


class LinearScalarization(WithPreference, name="linear"):
    """Weighted sum: objective i has the weight m r_i, with preference r and the run's m objectives.

    With equal preferences this is the plain sum, whichever objectives are drawn for a step.
    """

    for_one_objective = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        if self.preference is None:
            return Combined(np.ones(len(drawn)), "weighted")
        preference = np.asarray(self.preference, np.float64)
        weights = preference / preference.sum() * len(preference)
        return Combined(weights[list(drawn)], "weighted")


class RandomWeights(Combiner, name="random-weights"):
    """Weights drawn anew in each step: softmax of normal numbers (RLW; Lin et al., 2022)."""

    def build(self, setup: Setup) -> CombinerState:
        return RandomDraws(generator(setup.seed, self.name))


class RandomDraws(CombinerState):
    """Weights m softmax(z) with standard normal numbers z, one for each loss of a step."""

    stored = ("generator",)

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from scipy.special import softmax

        count = len(drawn)
        return Combined(count * softmax(self.generator.standard_normal(count)), "weighted")


class GeometricMean(Combiner, name="gls"):
    """The geometric mean of the losses, for which their scales do not matter (GLS).

    It is multiplied by their number m, as for the plain sum (Chennupati et al., 2019).
    """

    nonnegative = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(len(losses) * geometric_weights(losses), "weighted")


def geometric_weights(losses: np.ndarray) -> np.ndarray:
    """Return the weights (m,) in the gradient of (prod l_i)^(1/m), which are its value / (m l_i).

    `losses` (m,) are not negative.
    """
    found = np.maximum(losses, SMALLEST)
    return np.exp(np.log(found).mean()) / (len(found) * found)


class SmoothTchebycheff(WithPreference, name="stch"):
    """A smooth maximum of the losses times their preferences (STCH; Lin et al., 2024).

    It is multiplied by the number m of the losses, as for the plain sum.
    """

    positive = True
    smoothing: Positive = setting(
        0.1,
        help="mu of stch: the smaller, the nearer to the largest loss alone",
        metavar="MU",
        flag=False,
    )

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        count = len(drawn)
        weights = tchebycheff_weights(losses, self.preferences(drawn) * count, self.smoothing)
        return Combined(count * weights, "weighted")


def tchebycheff_weights(losses: np.ndarray, preference: np.ndarray, mu: float) -> np.ndarray:
    """Return the weights (m,) in the gradient of mu log sum_i exp(r_i l_i / mu).

    They are r_i softmax(r l / mu)_i; the ideal point of the losses is 0.
    """
    from scipy.special import softmax

    return preference * softmax(preference * losses / mu)


class Uncertainty(Combiner, name="uncertainty"):
    """Weights by homoscedastic uncertainty, learned from the losses (Kendall et al., 2018)."""

    for_one_objective = nonnegative = True

    def build(self, setup: Setup) -> CombinerState:
        return LogVariances(len(setup.objectives))


class LogVariances(CombinerState):
    """Objective i has the weight exp(-s_i); s_i follows the gradient of exp(-s_i) l_i + s_i.

    The log-variances s start at 0 and change by at most `RATE` per step, which limits the effect of
    an outlier. They converge to exp(-s_i) = 1 / l_i, where the scale of a loss has no influence
    (Kendall, Gal and Cipolla, 2018, Eq. 7).
    """

    stored = ("log_variances",)

    def __init__(self, objectives: int) -> None:
        self.log_variances = np.zeros(objectives)

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        chosen = list(drawn)
        weights = np.exp(-self.log_variances[chosen])
        moved = self.log_variances[chosen] - RATE * np.clip(1 - weights * losses, -1, 1)
        self.log_variances[chosen] = np.clip(moved, -LARGEST, LARGEST)
        return Combined(weights, "weighted")


class DynamicAverage(Combiner, name="dwa"):
    """The slower a loss fell over the last two epochs, the larger its weight (Liu et al., 2019)."""

    softness: Positive = setting(
        2.0, help="T of the softmax over loss ratios", metavar="T", flag=False
    )
    for_one_objective = True

    def build(self, setup: Setup) -> CombinerState:
        return LossRatios(len(setup.objectives), self.softness)


class LossRatios(CombinerState):
    """Weights m softmax(r / T) with r_k = L_k(t - 1) / L_k(t - 2), the mean losses of epochs.

    All are 1 in the first two epochs, and for an objective without batches in one of them r is 1.
    """

    stored = ("sums", "steps")

    def __init__(self, objectives: int, softness: float) -> None:
        self.softness = softness
        self.sums = np.zeros((3, objectives))  # of the last epoch but one, the last and this one
        self.steps = np.zeros((3, objectives))

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        chosen = list(drawn)
        self.sums[-1, chosen] += losses
        self.steps[-1, chosen] += 1
        return Combined(self.weights()[chosen], "weighted")

    def weights(self) -> np.ndarray:
        """Return the weights (m,) of all objectives of the run."""
        from scipy.special import softmax

        if not self.steps[0].any():
            return np.ones(self.sums.shape[1])
        with np.errstate(invalid="ignore", divide="ignore"):
            before, last, _ = self.sums / self.steps
            ratios = np.nan_to_num(last / before, nan=1.0, posinf=1.0)
        return len(ratios) * softmax(ratios / self.softness)

    def end_epoch(self) -> None:
        """Begin the sums of the next epoch."""
        nothing = np.zeros((1, self.sums.shape[1]))
        self.sums, self.steps = (np.vstack([a[1:], nothing]) for a in (self.sums, self.steps))
