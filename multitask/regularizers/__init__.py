"""Regularisation terms of a task's loss: settings here, computations in a file each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal

from common.errors import UserError
from common.later import Tensor
from common.settings import Count, Fraction, NonNegative, Positive, Settings, setting

BF16_RADIUS = 2**-8  # spacing of bfloat16 numbers; smaller shares are lost in rounding


class Regularizer(Settings):
    """A term that is added to the loss of some tasks. `weight` is one number, or one per task.

    A method without a state overrides `term`; any other overrides `build`, which returns a
    `RegularizerState` (base.py) for one run. Flags and JSON have its name before each setting.

    `learns_from_teacher`: it reads `clean.soft`, the teachers' `scores` of the examples, and with
    `needs_embeddings` their `embeddings`; it does not act on a task without a teacher.
    """

    learns_from_teacher: ClassVar[bool] = False
    weight: NonNegative | Mapping[str, NonNegative] = setting(
        factory=dict,
        help="weight of the term, which is off without it: one for all tasks, or TASK=W",
        metavar="W",
    )

    def __init_subclass__(cls, *, name: str = "", **more: Any) -> None:
        super().__init_subclass__(name=name, prefix=f"{name.replace('-', '_')}_", **more)

    def faults(self) -> Iterator[str]:
        weights = self.weight.values() if isinstance(self.weight, Mapping) else [self.weight]
        if not any(weights):
            yield f"{self.prefix}weight: must be above 0 for a task, or the term has no effect"

    @property
    def weights(self) -> Mapping[str, float]:
        """Weights by task, in a run."""
        return self.weight if isinstance(self.weight, Mapping) else {}

    def by_task(self, tasks: Iterable[str]) -> dict[str, float]:
        """Return the weight of each task that has one."""
        each = (
            self.weight if isinstance(self.weight, Mapping) else dict.fromkeys(tasks, self.weight)
        )
        return {task: weight for task, weight in each.items() if weight}

    @property
    def needs_embeddings(self) -> bool:
        """Return whether it also reads embeddings, of which a task then has one teacher."""
        return False

    def term(self, clean: Any) -> Tensor:
        """Return the term of the examples of a `CleanPass`, a scalar, without its weight."""
        raise UserError(f"regularizer {self.name}: expected a method term or build, found neither")

    def build(self, model: Any, seed: int) -> Any:
        """Return the `RegularizerState` of one run for an `EncoderWithHeads`."""
        from multitask.regularizers.base import Weighted

        return Weighted(self.name, self.weights, self.term)

    def precision_fault(self, precision: str) -> str | None:
        """Return a message if the term needs another precision, else None."""
        return None


class Smart(Regularizer, name="smart"):
    """SMART: adversarial noise on embeddings must not change predictions (Jiang et al., 2020)."""

    steps: Count = setting(1, help="gradient steps that increase the divergence")
    step_size: Positive | None = setting(
        None,
        metavar="X",
        help="with variant projected: length of a step as a share of the vectors' norm (default: "
        "the radius); with variant normalised: factor of the gradient (default: 0.001)",
    )
    radius: Positive | None = setting(
        None,
        metavar="SHARE",
        help="size of the noise as a share of the norm of the vectors it is added to, which suits "
        "any encoder (default: 0.1; with variant normalised the norm of the noise is 1 for any "
        "vectors)",
    )
    place: Literal["embeddings", "words"] = setting(
        "embeddings",
        help="add the noise to the output of the embedding module, as public implementations do, "
        "or to the word embeddings, before the module's LayerNorm",
    )
    norm: Literal["inf", "l2"] = setting("inf", help="norm of the noise and of its gradient")
    variant: Literal["normalised", "projected"] = setting(
        "normalised",
        help="noise of the same norm at every token, as in public implementations, or projected "
        "into a ball, as in the paper",
    )
    dropout: Literal["fixed", "fresh"] = setting(
        "fixed", help="dropout of the noisy pass: the same as in the clean pass, or a new one"
    )

    def build(self, model: Any, seed: int) -> Any:
        from multitask.regularizers.smart import SmartTerm

        return SmartTerm(self, seed)

    def precision_fault(self, precision: str) -> str | None:
        if precision != "bf16" or self.radius is None or self.radius >= BF16_RADIUS:
            return None
        return (
            f"smart_radius: expected {BF16_RADIUS:.4f} or more with precision bf16, whose rounding "
            f"error exceeds smaller noise, found {self.radius}"
        )


class Distillation(Regularizer, name="distillation"):
    """Outputs follow those of the runs in `teacher` (born-again networks; Clark et al., 2019).

    The weight is the share of the teacher in a task's loss; the labels have the rest.
    """

    learns_from_teacher = True
    weight: Fraction | Mapping[str, Fraction] = setting(
        factory=dict,
        help="share of the teacher in the loss, from 0 to 1; the labels have the rest: one for all "
        "tasks, or TASK=W (default: 1 with --teacher)",
        metavar="W",
    )
    temperature: Positive = setting(
        1.0, help="temperature of the probabilities of classes; above 1 they are more even"
    )
    annealing: bool = setting(
        True,
        help="let the share of the teacher fall from its weight to 0 over the run",
        source="Clark et al., 2019",
    )
    embeddings: NonNegative = setting(
        0.0, help="weight of 1 - cosine of the sentence embeddings of student and teacher"
    )

    @property
    def needs_embeddings(self) -> bool:
        return self.embeddings > 0

    def build(self, model: Any, seed: int) -> Any:
        from multitask.regularizers.distillation import DistillationTerm

        return DistillationTerm(self)
