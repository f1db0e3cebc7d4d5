"""Weighting by homoscedastic uncertainty (Kendall et al., 2018; Cipolla in its Eq. 7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Combiner, Setup

RATE = 0.01  # of the log-variances: a hundred steps to settle
LARGEST = 20.0  # of a log-variance, either way


class Uncertainty(Combiner, name="uncertainty"):
    """Weights by homoscedastic uncertainty, learnt from the losses (Kendall et al., 2018)."""

    for_one_objective = True

    def build(self, setup: Setup) -> LogVariances:
        return LogVariances(len(setup.objectives))


class LogVariances:
    """Objective i weighs exp(-s_i); s_i follows the gradient of exp(-s_i) l_i + s_i.

    The log-variances s start at 0 and move by at most `RATE` a step, so that one wild loss cannot
    throw them away; at rest exp(-s_i) = 1 / l_i, and losses of any scale weigh alike.
    """

    needs_rows = True

    def __init__(self, objectives: int) -> None:
        self.log_variances = np.zeros(objectives)

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        chosen = list(drawn)
        weights = np.exp(-self.log_variances[chosen])
        moved = self.log_variances[chosen] - RATE * np.clip(1 - weights * losses, -1, 1)
        self.log_variances[chosen] = np.clip(moved, -LARGEST, LARGEST)
        return Combined(weights, "weighted")

    def state_dict(self) -> dict[str, Any]:
        return {"log_variances": self.log_variances.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.log_variances = np.asarray(state["log_variances"], np.float64)
