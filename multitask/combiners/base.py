"""What a combiner is: m objectives' Gram matrix and losses -> weights of one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

ALONE = "one objective"  # status of a step in which nothing is to be combined


@dataclass(frozen=True)
class Combined:
    """Weights (m,) of the objectives' gradients, and how they came about.

    Where a method leaves the length of the step open, the weights add up to m, as the sum's do.
    """

    weights: np.ndarray
    status: str


@dataclass(frozen=True)
class Setup:
    """What a combiner is made from: the run's objectives in their order, and the user's wishes.

    `preference` (one weight an objective, adding up to 1) is None where none was given: equal ones.
    """

    objectives: tuple[str, ...]
    seed: int = 0
    preference: tuple[float, ...] | None = None
    cones: int = 5

    def preferences(self, drawn: Sequence[int]) -> np.ndarray:
        """Preference of the objectives drawn for a step, adding up to 1.

        Where those drawn all have a preference of 0, they are preferred equally among each other.
        """
        wishes = np.asarray(self.preference or [1.0] * len(self.objectives), np.float64)
        chosen = wishes[list(drawn)]
        return chosen / chosen.sum() if chosen.sum() > 0 else np.full(len(drawn), 1 / len(drawn))


def trivial(gram: np.ndarray) -> Combined | None:
    """The answer of a step with one objective, or without any gradient; None for other steps."""
    if len(gram) == 1:
        return Combined(np.ones(1), ALONE)
    if not np.diag(gram).mean() > 0:
        return Combined(np.ones(len(gram)), "no gradient")
    return None


class Combiner(Protocol):
    """Turns the objectives of a step into one direction; state and generators are its own.

    With `needs_rows` False its weights are all 1: the step adds the gradients up without keeping
    them apart, and asks only when it measures.
    """

    needs_rows: bool

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """`gram` (m, m) and `losses` (m,), float64 -> weights of the gradients.

        `drawn` says which of the run's objectives these m are.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """State as JSON."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Scaled:
    """Another combiner that sees every objective divided by a size of its own.

    With the losses before training for sizes, a preference speaks of how far each loss has come
    rather than of its units. The weights keep the sum of their amounts.
    """

    def __init__(self, combiner: Combiner, sizes: Sequence[float]) -> None:
        self.combiner, self.sizes = combiner, np.asarray(sizes, np.float64)
        self.needs_rows = combiner.needs_rows
        self.state_dict, self.load_state_dict = combiner.state_dict, combiner.load_state_dict

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        sizes = self.sizes[list(drawn)]
        found = self.combiner.combine(gram / np.outer(sizes, sizes), losses / sizes, drawn)
        weights = found.weights / sizes
        total = np.abs(weights).sum()
        if total > 0:
            weights *= np.abs(found.weights).sum() / total
        return Combined(weights, found.status)


class Stateless:
    """`state_dict` of a combiner whose answer depends on the present step alone."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Nothing to restore."""
