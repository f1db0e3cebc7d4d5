"""The sum of the objectives' gradients, as if their losses had been added (Bi et al., 2022)."""

from __future__ import annotations

from typing import Any

import numpy as np

from multitask.combiners.base import Combined


class Sum:
    """Every objective weighs 1."""

    needs_gram = False

    def combine(self, gram: np.ndarray, losses: np.ndarray) -> Combined:
        return Combined(np.ones(len(losses)), "summed")

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
