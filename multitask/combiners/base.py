"""The interface of a combiner: Gram matrix and losses of m objectives -> m weights."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from common.errors import RunError, UserError
from common.settings import NonNegative, Settings, setting, short

ROUNDING = 1e-9  # largest difference of a preference's sum from 1
ALONE = "one objective"  # status of a step without anything to combine


@dataclass(frozen=True)
class Combined:
    """Weights (m,) of the objectives' gradients, float64, and a status that describes them.

    If a method leaves the length of the step open, the weights add up to m, as for the plain sum.
    """

    weights: np.ndarray
    status: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", np.asarray(self.weights, np.float64))


@dataclass(frozen=True)
class Setup:
    """The inputs of `Combiner.build`: the run's objectives in their order, and its random seed."""

    objectives: tuple[str, ...]
    seed: int = 0


class ObjectiveError(UserError):
    """A loss that a combiner cannot use; `index` is that of its objective in the run."""

    def __init__(self, expected: str, index: int, loss: float, name: str | None = None) -> None:
        self.expected, self.index, self.loss = expected, index, loss
        super().__init__(f"{expected}, found {loss:.4g} of {name or f'objective {index}'}")

    def of(self, name: str) -> ObjectiveError:
        """Return the same error with the name of the objective."""
        return ObjectiveError(self.expected, self.index, self.loss, name)


def check_losses(name: str, losses: np.ndarray, drawn: Sequence[int]) -> None:
    """Raise ObjectiveError if a loss (m,) of the objectives `drawn` is below 0."""
    if (losses < 0).any():
        expected = f"combiner {name}: expected losses of zero or more"
        raise ObjectiveError(expected, drawn[int(losses.argmin())], float(losses.min()))


class CombinerState(Protocol):
    """A combiner in one run, with its own state and random generators; methods as in `Combiner`.

    If `needs_rows` is False, all weights are 1: the step adds the gradients up without keeping
    them apart, and calls `combine` only when it measures.
    """

    @property
    def needs_rows(self) -> bool: ...
    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...


@runtime_checkable
class ComparesLosses(Protocol):
    """A `CombinerState` that compares the losses (m,) of a step's batches before and after it.

    The later ones are computed with the new weights and the same dropout, in one more forward pass.
    """

    def after_step(self, before: np.ndarray, after: np.ndarray, drawn: Sequence[int]) -> None: ...


@runtime_checkable
class SeesEpochs(Protocol):
    """A `CombinerState` that is told when an epoch ends."""

    def end_epoch(self) -> None: ...


class Combiner(Settings):
    """A method that combines the gradients of several objectives into one step.

    A method that depends only on the current step overrides `combine`. A method with a state or
    random draws overrides `build`, which returns an object with `combine`, `state_dict` and
    `load_state_dict` for one run. If `needs_rows` is False, all weights are 1. If
    `for_one_objective` is True, steps with a single objective are passed to the method, too;
    otherwise its weight is 1 and the status "one objective". If `for_balanced` is False, the method
    cannot combine tasks whose own objectives are combined before.
    """

    needs_rows: ClassVar[bool] = True
    for_one_objective: ClassVar[bool] = False
    for_balanced: ClassVar[bool] = True
    weigh_heads: bool = setting(
        False,
        help="let the weights of the objectives also apply to heads and layers of a single task",
    )

    def build(self, setup: Setup) -> CombinerState:
        """Return the combiner of one run."""
        return self

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights (m,) of the gradients; `gram` (m, m) and `losses` (m,) are float64.

        `drawn` holds the indices of these m objectives among those of the run.
        """
        raise UserError(f"combiner {self.name}: expected a method combine or build, found neither")

    def state_dict(self) -> dict[str, Any]:
        """Return the state in a form that JSON can store; empty for a method without a state."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""


class WithPreference(Combiner):
    """A combiner that may prefer some objectives; `preference` is stored with the sum 1.

    If `positive` is True, no number of it may be 0.
    """

    positive: ClassVar[bool] = False
    preference: tuple[NonNegative, ...] | None = setting(
        None,
        metavar="W",
        help="a weight per objective, in the order of the tasks; the larger, the lower its loss",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        total = sum(self.preference or ())
        if self.preference is not None and abs(total - 1) > ROUNDING:
            shares = tuple(weight / total for weight in self.preference)
            object.__setattr__(self, "preference", shares)

    def faults(self) -> Iterator[str]:
        preference = self.preference
        if preference is None:
            return
        shown = " ".join(f"{weight:g}" for weight in preference)
        if not sum(preference) > 0:
            yield f"preference: expected at least one number above 0, found {shown or 'none'}"
        elif self.positive and not all(weight > 0 for weight in preference):
            yield f"preference: expected numbers above 0 for combiner {self.name}, found {shown}"


def stored_state(combiner: CombinerState, name: str) -> dict[str, Any]:
    """Return the state of a run's combiner; raise RunError if JSON cannot keep it."""
    state = combiner.state_dict()
    line = f"combiner {name}: expected a state of JSON values with texts as keys, found"
    try:
        json.dumps(state)
    except (TypeError, ValueError) as error:
        raise RunError(f"{line} another: {error}") from error
    if not has_text_keys(state):
        raise RunError(f"{line} {short(state)}")
    return state


def has_text_keys(value: Any) -> bool:
    """Return whether all keys of a JSON value are texts; JSON makes texts of others."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and has_text_keys(one) for key, one in value.items())
    return not isinstance(value, list | tuple) or all(map(has_text_keys, value))


def preferences(preference: Sequence[float] | None, drawn: Sequence[int]) -> np.ndarray:
    """Return the preference of the objectives drawn for a step, with the sum 1.

    All numbers are equal if `preference` is None, or 0 for all objectives drawn.
    """
    equal = np.full(len(drawn), 1 / len(drawn))
    if preference is None:
        return equal
    chosen = np.asarray(preference, np.float64)[list(drawn)]
    return chosen / chosen.sum() if chosen.sum() > 0 else equal


def trivial(gram: np.ndarray) -> Combined | None:
    """Return the result of a step with one objective or without any gradient, else None."""
    if len(gram) == 1:
        return Combined(np.ones(1), ALONE)
    if not np.diag(gram).mean() > 0:
        return Combined(np.ones(len(gram)), "no gradient")
    return None
