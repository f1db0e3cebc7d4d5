"""The interface of a regulariser: a term that is added to the loss of some tasks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from common.errors import SettingsError, UserError
from common.later import Tensor
from common.settings import NonNegative, Settings, setting

if TYPE_CHECKING:
    from multitask.passes import CleanPass
    from tasks.base import Task


class Regularizer(Settings):
    """A term that is added to the loss of some tasks. `weight` is one number, or one per task.

    A method overrides `term`. Flags and JSON have its name before each setting.

    `learns_from_teacher`: it reads `clean.soft`, the teachers' mean scores of the examples; it does
    not act on a task without a teacher.
    """

    learns_from_teacher: ClassVar[bool] = False
    weight: NonNegative | Mapping[str, NonNegative] = setting(
        factory=dict,
        help="weight of the term for all tasks, or TASK=W for one; without it, the term is off",
        metavar="W",
    )

    def __init_subclass__(cls, *, name: str = "", **more: Any) -> None:
        super().__init_subclass__(name=name, prefix=f"{name.replace('-', '_')}_", **more)

    def faults(self) -> Iterator[str]:
        weights = self.weight.values() if isinstance(self.weight, Mapping) else [self.weight]
        if not any(weights):
            yield f"{self.prefix}weight: must be above 0 for at least one task"

    def by_task(self, tasks: Iterable[str]) -> dict[str, float]:
        """Return the weight of each task that has one."""
        each = (
            self.weight if isinstance(self.weight, Mapping) else dict.fromkeys(tasks, self.weight)
        )
        return {task: weight for task, weight in each.items() if weight}

    def term(self, clean: "CleanPass") -> Tensor:
        """Return the term of the examples of a `CleanPass`, a scalar, without its weight."""
        raise UserError(f"regularizer {self.name}: the class needs a method term")

    def checked_weights(self, tasks: "Mapping[str, Task]") -> dict[str, float]:
        """Return `by_task`; raise SettingsError for a task whose outputs cannot be compared."""
        found = self.by_task(tasks)
        for name in found:
            if tasks[name].compares_examples or tasks[name].kind.divergence is None:
                line = f"the outputs of {name} cannot be compared; give the weights of other tasks"
                raise SettingsError(f"{self.prefix}weight: {line}, as TASK=W")
        return found
