"""Dynamic weight average (DWA; Liu, Johns and Davison, 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.settings import Positive, setting
from multitask.combiners.base import Combined, Combiner, Setup


class DynamicAverage(Combiner, name="dwa"):
    """The slower a loss fell over the last two epochs, the larger its weight (Liu et al., 2019)."""

    softness: Positive = setting(2.0, help="T of the softmax over loss ratios", metavar="T")
    for_one_objective = True

    def build(self, setup: Setup) -> LossRatios:
        return LossRatios(len(setup.objectives), self.softness)


class LossRatios:
    """Weights m softmax(r / T) with r_k = L_k(t - 1) / L_k(t - 2), the mean losses of epochs.

    All are 1 in the first two epochs, and for an objective without batches in one of them r is 1.
    """

    needs_rows = True

    def __init__(self, objectives: int, softness: float) -> None:
        self.softness = softness
        self.sums, self.steps = np.zeros(objectives), np.zeros(objectives)  # of this epoch
        self.means: list[np.ndarray] = []  # of the last two epochs; NaN without a step

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        chosen = list(drawn)
        self.sums[chosen] += losses
        self.steps[chosen] += 1
        return Combined(self.weights()[chosen], "weighted")

    def weights(self) -> np.ndarray:
        """Return the weights (m,) of all objectives of the run."""
        from scipy.special import softmax

        if len(self.means) < 2:
            return np.ones(len(self.sums))
        before, last = self.means
        ratios = np.nan_to_num(last / before, nan=1.0, posinf=1.0)
        return len(ratios) * softmax(ratios / self.softness)

    def end_epoch(self) -> None:
        """Keep the mean losses of the epoch that ends."""
        with np.errstate(invalid="ignore"):
            means = self.sums / self.steps
        self.means = [*self.means[-1:], means]
        self.sums, self.steps = np.zeros_like(self.sums), np.zeros_like(self.steps)

    def state_dict(self) -> dict[str, Any]:
        means = [[None if np.isnan(one) else one for one in several] for several in self.means]
        return {"sums": self.sums.tolist(), "steps": self.steps.tolist(), "means": means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums, self.steps = np.array(state["sums"]), np.array(state["steps"])
        self.means = [np.array(several, np.float64) for several in state["means"]]
