"""The plain sum of the objectives' gradients, and a weighted one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multitask.combiners.base import Combined, Setup, Stateless


class Sum(Stateless):
    """Every objective weighs 1, as if the losses had been added (Bi et al., 2022)."""

    needs_rows = False

    def __init__(self, setup: Setup) -> None:
        pass

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(np.ones(len(drawn)), "summed")


class LinearScalarization(Stateless):
    """Objective i weighs m r_i, for the preference r and all m objectives of the run.

    With equal preferences it is the sum, whatever is drawn for a step.
    """

    needs_rows = True

    def __init__(self, setup: Setup) -> None:
        objectives = range(len(setup.objectives))
        self.weights = setup.preferences(objectives) * len(setup.objectives)

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(self.weights[list(drawn)], "weighted")
