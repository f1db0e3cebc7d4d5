"""The interface of a combiner: Gram matrix and losses of m objectives -> m weights."""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from common.errors import UserError
from common.settings import NonNegative, Settings, setting

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


class Combiner(Settings):
    """A method that combines the gradients of several objectives into one step.

    A method overrides `combine`. What it remembers between steps, or draws at random, `start`
    returns, and `state` has it during a run: arrays and NumPy's random generators by name, which
    the method changes in place and checkpoints keep.

    If `needs_rows` is False, all weights are 1: the gradients are added up without keeping them
    apart. If `for_one_objective` is True, the weights of a step with a single objective count, too;
    otherwise the status of the step is "one objective". With `nonnegative`, a loss below 0 ends the
    run. With `compares_losses`, one more forward pass shows it the losses after each step; it
    cannot combine tasks whose own objectives are combined before.
    """

    needs_rows: ClassVar[bool] = True
    for_one_objective: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False
    compares_losses: ClassVar[bool] = False
    state: ClassVar[dict[str, Any]] = {}

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        """Return the state at the start of a run with that many objectives."""
        return {}

    def for_run(self, objectives: int, seed: int = 0) -> Self:
        """Return this combiner with a state of its own."""
        found = copy(self)
        object.__setattr__(found, "state", self.start(objectives, seed))
        return found

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        """Return the weights (m,) of the gradients; `gram` (m, m) and `losses` (m,) are float64.

        `drawn` holds the indices of these m objectives among those of the run.
        """
        raise UserError(f"combiner {self.name}: the class needs a method combine")

    def after_step(self, before: np.ndarray, after: np.ndarray, drawn: Sequence[int]) -> None:
        """See the losses (m,) of a step's batches before and after it: of `compares_losses`."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value.bit_generator.state
            for name, value in self.state.items()
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        for name, value in state.items():
            own = self.state[name]
            if isinstance(own, np.ndarray):
                own[...] = value
            else:
                own.bit_generator.state = value


class WithPreference(Combiner):
    """A combiner that may prefer some objectives; only the ratios of `preference` count."""

    preference: tuple[NonNegative, ...] | None = setting(
        None,
        metavar="W",
        help="a weight for each objective, in the order of tasks; a larger one lowers its loss",
    )

    def faults(self) -> Iterator[str]:
        if self.preference is not None and not sum(self.preference) > 0:
            shown = " ".join(f"{weight:g}" for weight in self.preference) or "none"
            yield f"preference: at least one number must be above 0, found {shown}"
