"""What a combiner is: m objectives' Gram matrix and losses -> weights of one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class Combined:
    """Weights (m,) of the objectives' gradients, and how they came about."""

    weights: np.ndarray
    status: str


class Combiner(Protocol):
    """Turns the objectives of a step into one direction; a generator it needs is its own.

    With `needs_gram` False its weights are all 1 and the step simply adds the gradients up.
    """

    needs_gram: bool

    def combine(self, gram: np.ndarray, losses: np.ndarray) -> Combined:
        """`gram` (m, m) and `losses` (m,), float64 -> weights of the gradients."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """State as JSON."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...
