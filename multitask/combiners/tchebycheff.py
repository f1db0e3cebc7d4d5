"""Smooth Tchebycheff scalarisation (STCH; Lin et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from common.settings import Positive, setting
from multitask.combiners.base import Combined, WithPreference, preferences


class SmoothTchebycheff(WithPreference, name="stch"):
    """A smooth maximum of the losses times their preferences (STCH; Lin et al., 2024).

    It is multiplied by the number m of the losses, as for the plain sum.
    """

    positive = True
    smoothing: Positive = setting(
        0.1, help="mu of stch: the smaller, the nearer to the largest loss alone", metavar="MU"
    )

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        count = len(drawn)
        scaled = preferences(self.preference, drawn) * count
        weights = tchebycheff_weights(losses, scaled, self.smoothing)
        return Combined(count * weights, "weighted")


def tchebycheff_weights(losses: np.ndarray, preference: np.ndarray, mu: float) -> np.ndarray:
    """Return the weights (m,) in the gradient of mu log sum_i exp(r_i l_i / mu).

    They are r_i softmax(r l / mu)_i; the ideal point of the losses is 0.
    """
    from scipy.special import softmax

    return preference * softmax(preference * losses / mu)
