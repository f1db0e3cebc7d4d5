"""The interface of a combiner: Gram matrix and losses of m objectives -> m weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from common.errors import UserError
from common.settings import NonNegative, Settings, setting

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


class CombinerState:
    """A combiner in one run, which a method with a state or random draws derives its own from.

    `stored` names the attributes that a checkpoint keeps: arrays and NumPy's random generators.
    """

    stored: ClassVar[tuple[str, ...]] = ()

    def __init__(self, method: Combiner) -> None:
        self.method = method

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights (m,) of a step, as `Combiner.combine` does."""
        return self.method.combine(gram, losses, drawn)

    def after_step(self, before: np.ndarray, after: np.ndarray, drawn: Sequence[int]) -> None:
        """See the losses (m,) of a step's batches before and after it: of `compares_losses`."""

    def end_epoch(self) -> None:
        """See that an epoch has ended."""

    def state_dict(self) -> dict[str, Any]:
        """Return what `stored` names, as JSON."""
        values = {name: getattr(self, name) for name in self.stored}
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value.bit_generator.state
            for name, value in values.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        for name, value in state.items():
            own = getattr(self, name)
            if isinstance(own, np.ndarray):
                setattr(self, name, np.asarray(value, np.float64))
            else:
                own.bit_generator.state = value


class Combiner(Settings):
    """A method that combines the gradients of several objectives into one step.

    A method that depends only on the current step overrides `combine`. A method with a state or
    random draws overrides `build`. If `needs_rows` is False, all weights are 1: the gradients are
    added up without keeping them apart. If `for_one_objective` is True, the weights of a step with
    a single objective count, too; otherwise the status of the step is "one objective". With
    `nonnegative`, a loss below 0 ends the run. With `compares_losses`, one more forward pass shows
    it the losses after each step; it cannot combine tasks whose own objectives are combined before.
    """

    needs_rows: ClassVar[bool] = True
    for_one_objective: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False
    compares_losses: ClassVar[bool] = False
    weigh_heads: bool = setting(
        False,
        help="let the weights of the objectives also apply to heads and layers of a single task",
        flag=False,
        keyword=True,
    )

    def build(self, setup: Setup) -> CombinerState:
        """Return the combiner of one run."""
        return CombinerState(self)

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights (m,) of the gradients; `gram` (m, m) and `losses` (m,) are float64.

        `drawn` holds the indices of these m objectives among those of the run.
        """
        raise UserError(f"combiner {self.name}: expected a method combine or build, found neither")


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
        if self.preference is None:
            return
        shown = " ".join(f"{weight:g}" for weight in self.preference)
        if not sum(self.preference) > 0:
            yield f"preference: expected at least one number above 0, found {shown or 'none'}"
        elif self.positive and not all(weight > 0 for weight in self.preference):
            yield f"preference: expected numbers above 0 for combiner {self.name}, found {shown}"

    def preferences(self, drawn: Sequence[int]) -> np.ndarray:
        """Return the preference of the objectives drawn for a step, with the sum 1.

        All numbers are equal without a preference, or if it is 0 for all objectives drawn.
        """
        equal = np.full(len(drawn), 1 / len(drawn))
        if self.preference is None:
            return equal
        chosen = np.asarray(self.preference, np.float64)[list(drawn)]
        return chosen / chosen.sum() if chosen.sum() > 0 else equal
