"""The plain sum of the objectives' gradients, and a weighted one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multitask.combiners.base import Combined, Combiner, WithPreference


class Sum(Combiner, name="sum"):
    """Every objective weighs 1, as if the losses had been added (Bi et al., 2022)."""

    needs_rows = False
    for_one_objective = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(np.ones(len(drawn)), "summed")


class LinearScalarization(WithPreference, name="linear"):
    """Objective i weighs m r_i, for the preference r and all m objectives of the run.

    With equal preferences it is the sum, whatever is drawn for a step.
    """

    for_one_objective = sweeps = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        if self.preference is None:
            return Combined(np.ones(len(drawn)), "weighted")
        wish = np.asarray(self.preference, np.float64)
        weights = wish / wish.sum() * len(wish)
        return Combined(weights[list(drawn)], "weighted")
