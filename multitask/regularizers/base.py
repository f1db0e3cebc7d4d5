"""What a regulariser sees of a step, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from torch import Tensor

from minbert.batching import Batch
from multitask.errors import RunError
from multitask.model import EncoderWithHeads
from multitask.passes import EncoderPass, Part
from tasks.base import Embeddings, Outputs, Task

if TYPE_CHECKING:
    from multitask.config import RunConfig


@dataclass(frozen=True)
class Clean:
    """A part of a task's examples that went through encoder and head in one pass, as they are.

    `loss` is the task's first objective on them.
    """

    encoder_pass: EncoderPass
    task: Task
    part: Part
    step: int
    targets: Tensor
    outputs: Outputs
    loss: Tensor

    @property
    def model(self) -> EncoderWithHeads:
        return self.encoder_pass.model

    @property
    def batch(self) -> Batch:
        (batch,) = self.encoder_pass.batches
        return batch

    def embed(self, batch: Batch, model: EncoderWithHeads | None = None) -> Embeddings:
        """Another batch's texts by this model or another one, for the task's head."""
        return (model or self.model).embed(batch, self.task.name)

    @property
    def number(self) -> int:
        """Of the dropout of the pass, which covers encoder and head."""
        (number,) = self.encoder_pass.numbers
        return number

    def another_pass(self, batch: Batch) -> tuple[EncoderPass, Outputs]:
        """The same examples, perhaps with noise, through encoder and head again."""
        one = EncoderPass(self.model, [batch], batch.texts, self.task.name)
        return one, self.head(one.texts)

    def head(self, texts: Embeddings) -> Outputs:
        return self.model.heads[self.task.name](*texts)

    def divergence(self, found: Outputs, expected: Outputs) -> Tensor:
        """How far two outputs of the task lie apart."""
        assert self.task.kind.divergence is not None, f"{self.task.name} has outputs to compare"
        return self.task.kind.divergence(found, expected)


class Term(NamedTuple):
    """What is added to the loss, and the further passes it was computed from."""

    value: Tensor
    passes: Sequence[EncoderPass] = ()


class Running(Protocol):
    """A term for the tasks that `weights` names; some remember, between steps or over a resume."""

    weights: Mapping[str, float]

    def __call__(self, clean: Clean) -> Term: ...

    def after_step(self, model: EncoderWithHeads) -> None:
        """The optimiser has moved the model."""

    def state_dict(self) -> dict[str, Any]:
        """Tensors that a resumed run needs."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class Stateless:
    """For regularisers that remember nothing."""

    def after_step(self, model: EncoderWithHeads) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        pass


class Weighted(Stateless):
    """A term of some examples, times the weight of their task."""

    def __init__(self, weights: Mapping[str, float], term: Callable[[Clean], Tensor]) -> None:
        self.weights, self.term = weights, term

    def __call__(self, clean: Clean) -> Term:
        return Term(self.weights[clean.task.name] * self.term(clean))


def build_regularizers(
    config: RunConfig, model: EncoderWithHeads, tasks: Mapping[str, Task]
) -> dict[str, Running]:
    """Those of a configuration, by name: each acts on the tasks it has a weight for.

    Raises RunError for a task whose outputs cannot be compared, example by example.
    """
    found = {one.name: one.build(model, config.seed) for one in config.regularizers}
    for name, regularizer in found.items():
        for task in regularizer.weights:
            if tasks[task].in_batch or tasks[task].kind.divergence is None:
                expected = "a task whose outputs can be compared one by one"
                raise RunError(f"{name}: expected {expected}, found {task}")
    return found
