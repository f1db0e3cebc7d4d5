"""What a combiner is: m objectives' Gram matrix and losses -> weights of one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from common.errors import UserError
from common.settings import FromZero, Settings, setting

ROUNDING = 1e-9  # how far a preference may be from adding up to 1
ALONE = "one objective"  # status of a step in which nothing is to be combined


@dataclass(frozen=True)
class Combined:
    """Weights (m,) of the objectives' gradients, float64, and how they came about.

    Where a method leaves the length of the step open, the weights add up to m, as the sum's do.
    """

    weights: np.ndarray
    status: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", np.asarray(self.weights, np.float64))


@dataclass(frozen=True)
class Setup:
    """What a combiner is built for: the run's objectives in their order, and its seed."""

    objectives: tuple[str, ...]
    seed: int = 0


class ObjectiveError(UserError):
    """A loss that a combiner cannot work with; `place` is its objective's among the run's."""

    def __init__(self, expected: str, place: int, loss: float, name: str | None = None) -> None:
        self.expected, self.place, self.loss = expected, place, loss
        super().__init__(f"{expected}, found {loss:.4g} of {name or f'objective {place}'}")

    def of(self, name: str) -> ObjectiveError:
        """The same with the objective's name."""
        return ObjectiveError(self.expected, self.place, self.loss, name)


class Running(Protocol):
    """Turns the objectives of a step into one direction; state and generators are its own.

    With `needs_rows` False its weights are all 1: the step adds the gradients up without keeping
    them apart, and asks only when it measures.
    """

    @property
    def needs_rows(self) -> bool: ...

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """`gram` (m, m) and `losses` (m,), float64 -> weights of the gradients.

        `drawn` says which of the run's objectives these m are.
        """
        ...

    def state_dict(self) -> dict[str, Any]:
        """State as JSON."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Combiner(Settings):
    """How several objectives' gradients become one step.

    A method whose answer depends on the present step gives `combine`. One that remembers, or draws
    at random, gives `build`, which makes an object with `combine`, `state_dict` and
    `load_state_dict` for a run. With `needs_rows` False all weights are 1. `for_one_objective` says
    that the method means something for a single objective, too.
    """

    needs_rows: ClassVar[bool] = True
    for_one_objective: ClassVar[bool] = False

    def build(self, setup: Setup) -> Running:
        """What combines the steps of one run."""
        return self

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """`gram` (m, m) and `losses` (m,), float64 -> weights (m,) of the gradients.

        `drawn` says which of the run's objectives these m are.
        """
        raise UserError(f"combiner {self.name}: expected combine or build")

    def state_dict(self) -> dict[str, Any]:
        """State as JSON; none of a method that remembers nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` gave."""


class WithPreference(Combiner):
    """A combiner that may prefer some objectives; `preference` is stored with the sum 1.

    `positive` says that no number of it may be 0; `sweeps` that mode pareto may train with it.
    """

    positive: ClassVar[bool] = False
    sweeps: ClassVar[bool] = False
    preference: tuple[FromZero, ...] | None = setting(
        None,
        metavar="W",
        help="a weight for each objective, in the tasks' order; the larger, the lower its loss is "
        "to be",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        wish = self.preference
        if wish is not None and abs(sum(wish) - 1) > ROUNDING:
            object.__setattr__(self, "preference", tuple(weight / sum(wish) for weight in wish))

    def faults(self) -> Iterator[str]:
        wish = self.preference
        if wish is None:
            return
        shown = " ".join(f"{weight:g}" for weight in wish)
        if not sum(wish) > 0:
            yield f"preference: expected a number above 0 among them, found {shown or 'none'}"
        elif self.positive and not all(weight > 0 for weight in wish):
            yield f"preference: expected numbers above 0 for combiner {self.name}, found {shown}"


def preferences(wish: Sequence[float] | None, drawn: Sequence[int]) -> np.ndarray:
    """Preference of the objectives drawn for a step, adding up to 1; equal ones for None.

    Where those drawn all have a preference of 0, they are preferred equally among each other.
    """
    chosen = np.ones(len(drawn)) if wish is None else np.asarray(wish, np.float64)[list(drawn)]
    return chosen / chosen.sum() if chosen.sum() > 0 else np.full(len(drawn), 1 / len(drawn))


def trivial(gram: np.ndarray) -> Combined | None:
    """The answer of a step with one objective, or without any gradient; None for other steps."""
    if len(gram) == 1:
        return Combined(np.ones(1), ALONE)
    if not np.diag(gram).mean() > 0:
        return Combined(np.ones(len(gram)), "no gradient")
    return None


class Scaled:
    """Another combiner that sees every objective divided by a size of its own.

    With the losses before training for sizes, a preference speaks of how far each loss has come
    rather than of its units. The weights keep the sum of their amounts.
    """

    def __init__(self, combiner: Running, sizes: Sequence[float]) -> None:
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
