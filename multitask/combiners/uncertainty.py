"""Weighting by homoscedastic uncertainty (Kendall, Gal and Cipolla, 2018, Eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Combiner, Setup, check_losses

RATE = 0.01  # learning rate of the log-variances: they settle in about a hundred steps
LARGEST = 20.0  # largest absolute value of a log-variance


class Uncertainty(Combiner, name="uncertainty"):
    """Weights by homoscedastic uncertainty, learned from the losses (Kendall et al., 2018)."""

    for_one_objective = True

    def build(self, setup: Setup) -> LogVariances:
        return LogVariances(len(setup.objectives))


class LogVariances:
    """Objective i has the weight exp(-s_i); s_i follows the gradient of exp(-s_i) l_i + s_i.

    The log-variances s start at 0 and change by at most `RATE` per step, which limits the effect of
    an outlier. They converge to exp(-s_i) = 1 / l_i, where the scale of a loss has no influence.
    """

    needs_rows = True

    def __init__(self, objectives: int) -> None:
        self.log_variances = np.zeros(objectives)

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        check_losses(Uncertainty.name, losses, drawn)
        chosen = list(drawn)
        weights = np.exp(-self.log_variances[chosen])
        moved = self.log_variances[chosen] - RATE * np.clip(1 - weights * losses, -1, 1)
        self.log_variances[chosen] = np.clip(moved, -LARGEST, LARGEST)
        return Combined(weights, "weighted")

    def state_dict(self) -> dict[str, Any]:
        return {"log_variances": self.log_variances.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.log_variances = np.asarray(state["log_variances"], np.float64)
