"""Geometric mean of the losses (GLS; Chennupati et al., 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multitask.combiners.base import Combined, Combiner, check_losses

SMALLEST = 1e-8  # loss inside logarithms and quotients


class GeometricMean(Combiner, name="gls"):
    """The geometric mean of the losses, for which their scales do not matter (GLS).

    It is multiplied by their number m, as for the plain sum.
    """

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        check_losses(self.name, losses, drawn)
        return Combined(len(losses) * geometric_weights(losses), "weighted")


def geometric_weights(losses: np.ndarray) -> np.ndarray:
    """Return the weights (m,) in the gradient of (prod l_i)^(1/m), which are its value / (m l_i).

    `losses` (m,) are not negative.
    """
    found = np.maximum(losses, SMALLEST)
    return np.exp(np.log(found).mean()) / (len(found) * found)
