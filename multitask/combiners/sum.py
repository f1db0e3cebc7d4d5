"""The plain and the weighted sum of the objectives' gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multitask.combiners.base import Combined, Combiner, WithPreference


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
