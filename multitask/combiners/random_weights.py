"""Random loss weighting (RLW; Lin et al., 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.random_generators import generator
from multitask.combiners.base import Combined, Combiner, Setup


class RandomWeights(Combiner, name="random-weights"):
    """Weights drawn anew in each step: softmax of normal numbers (RLW; Lin et al., 2022)."""

    def build(self, setup: Setup) -> RandomDraws:
        return RandomDraws(generator(setup.seed, self.name))


class RandomDraws:
    """Weights m softmax(z) with standard normal numbers z, one for each loss of a step."""

    needs_rows = True

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        from scipy.special import softmax

        count = len(drawn)
        return Combined(count * softmax(self.generator.standard_normal(count)), "weighted")

    def state_dict(self) -> dict[str, Any]:
        return dict(self.generator.bit_generator.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.generator.bit_generator.state = state
