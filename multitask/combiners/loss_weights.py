"""Combiners that need only the losses, and the plain sum."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Combiner, WithPreference
from multitask.sampling import generator

RATE = 0.01  # of the log-variances of uncertainty: they settle in about a hundred steps
LARGEST = 20.0  # largest absolute value of a log-variance


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
    """Weights drawn anew in each step: softmax of normal numbers (RLW; Lin et al., 2022).

    With standard normal numbers z, one for each loss of a step, they are m softmax(z).
    """

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        return {"generator": generator(seed, self.name)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from scipy.special import softmax

        numbers = self.state["generator"].standard_normal(len(drawn))
        return Combined(len(drawn) * softmax(numbers), "weighted")


class Uncertainty(Combiner, name="uncertainty"):
    """Weights by homoscedastic uncertainty, learned from the losses (Kendall et al., 2018).

    Objective i has the weight exp(-s_i); s_i follows the gradient of exp(-s_i) l_i + s_i. The
    log-variances s start at 0 and change by at most 0.01 per step, which limits the effect of an
    outlier. They converge to exp(-s_i) = 1 / l_i, where the scale of a loss has no influence
    (Eq. 7).
    """

    for_one_objective = nonnegative = True

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        return {"log_variances": np.zeros(objectives)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        log_variances, chosen = self.state["log_variances"], list(drawn)
        weights = np.exp(-log_variances[chosen])
        moved = log_variances[chosen] - RATE * np.clip(1 - weights * losses, -1, 1)
        log_variances[chosen] = np.clip(moved, -LARGEST, LARGEST)
        return Combined(weights, "weighted")
