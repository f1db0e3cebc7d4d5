"""The interface of a regulariser: its inputs from a training step, and its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from common.errors import RunError, SettingsError
from minbert.batching import Batch
from multitask.model import EncoderWithHeads
from multitask.passes import EncoderPass, Part, loss_fault
from multitask.regularizers import Regularizer
from tasks.base import Embeddings, Task
from tasks.data import SoftTargets
from tasks.kinds import Outputs


@dataclass(frozen=True)
class CleanPass:
    """Examples of a task after one unperturbed pass through encoder and head.

    `loss` is the task's first objective on these examples, `soft` the scores, and perhaps the
    embeddings, of its teachers for them, and `progress` the share of the run's steps before this
    one.
    """

    encoder_pass: EncoderPass
    task: Task
    part: Part
    step: int
    targets: Tensor
    outputs: Outputs
    loss: Tensor
    soft: SoftTargets | None = None
    progress: float = 0.0

    @property
    def model(self) -> EncoderWithHeads:
        return self.encoder_pass.model

    @property
    def batch(self) -> Batch:
        (batch,) = self.encoder_pass.batches
        return batch

    def embed(self, batch: Batch) -> Embeddings:
        """Embed the texts of a batch for the task's head."""
        return self.model.embed(batch, self.task.name)

    @property
    def random_state(self) -> Tensor:
        """The state of the random generator before the pass, for encoder and head."""
        (state,) = self.encoder_pass.states
        return state

    def another_pass(self, batch: Batch) -> tuple[EncoderPass, Outputs]:
        """Pass the same examples, perhaps with noise, through encoder and head again."""
        one = EncoderPass(self.model, [batch], batch.texts, self.task.name)
        return one, self.head(one.texts)

    def head(self, texts: Embeddings) -> Outputs:
        return self.model.heads[self.task.name](*texts)

    def divergence(self, found: Outputs, expected: Outputs) -> Tensor:
        """Return the divergence between two outputs of the task, a scalar."""
        assert self.task.kind.divergence is not None, f"{self.task.name} has outputs to compare"
        return self.task.kind.divergence(found, expected)


class Term(NamedTuple):
    """A value that is added to the loss, and the further passes it was computed from."""

    value: Tensor
    passes: Sequence[EncoderPass] = ()


class RegularizerState:
    """A regulariser in one run, for the tasks in `weights`; by default it has no state."""

    weights: Mapping[str, float]

    def __call__(self, clean: CleanPass) -> Term:
        raise NotImplementedError

    def after_step(self, model: EncoderWithHeads) -> None:
        """Update the state after an optimiser step."""

    def state_dict(self) -> dict[str, Any]:
        """Return the tensors that a resumed run needs."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the tensors that `state_dict` returned."""


class Weighted(RegularizerState):
    """The term of the regulariser `name` times the weight of its task."""

    def __init__(
        self, name: str, weights: Mapping[str, float], term: Callable[[CleanPass], Tensor]
    ) -> None:
        self.name, self.weights, self.term = name, weights, term

    def __call__(self, clean: CleanPass) -> Term:
        return Term(self.weights[clean.task.name] * self.value(clean))

    def value(self, clean: CleanPass) -> Tensor:
        """Return the term; raise RunError unless it is one number, with a gradient or 0."""
        value = self.term(clean)
        if isinstance(value, int | float):
            value = torch.tensor(float(value))
        if found := loss_fault(value, zero=True):
            line = "expected a term of one number with a gradient, or 0"
            raise RunError(f"regularizer {self.name}: {line}, found {found}")
        return value


def build_regularizers(
    methods: Iterable[Regularizer], seed: int, model: EncoderWithHeads, tasks: Mapping[str, Task]
) -> dict[str, RegularizerState]:
    """Return the regularisers of a run by name; each acts on the tasks in its weights.

    Raise SettingsError for a task whose outputs cannot be compared example by example, and RunError
    if `build` returns something else.
    """
    found = {
        one.name: replace(one, weight=one.by_task(tasks)).build(model, seed) for one in methods
    }
    for name, regularizer in found.items():
        if not isinstance(regularizer, RegularizerState):
            expected = "expected build to return a RegularizerState"
            raise RunError(f"regularizer {name}: {expected}, found {type(regularizer).__name__}")
        for task in regularizer.weights:
            if tasks[task].compares_examples or tasks[task].kind.divergence is None:
                line = f"the outputs of {task} cannot be compared; give the weights of other tasks"
                raise SettingsError(f"{name.replace('-', '_')}_weight: {line}, as TASK=W")
    return found


def check_tensors(name: str, state: Mapping[str, Any]) -> None:
    """Raise RunError unless a regulariser's state has tensors only, as a checkpoint stores them."""
    for key, value in state.items():
        if not (isinstance(key, str) and isinstance(value, Tensor)):
            found = f"{key!r}: {type(value).__name__}"
            expected = "expected a state of tensors with texts as keys"
            raise RunError(f"regularizer {name}: {expected}, found {found}")
