"""Passes of a step's examples through the encoder and its heads, and their losses.

B examples, H width. A pass ends at leaves: the embeddings of its texts, detached from the encoder's
graph. Losses are differentiated down to the leaves first, and from there through the encoder.

Dropout is drawn from PyTorch's generator, which each step seeds by the run's seed, the number of
the step and the process. A resumed run thus draws what the run would have drawn, and a checkpoint
needs no state of a generator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from common.random_generators import generator
from minbert.batching import Batch
from multitask.distributed import Processes
from multitask.model import EncoderWithHeads
from multitask.settings.config import RunConfig
from tasks.base import Embeddings, Task
from tasks.data import Splits
from tasks.kinds import Outputs


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed the generators of all devices for a step of one process."""
    torch.manual_seed(int(generator(seed, "dropout", step, rank).integers(1 << 63)))


def random_state(device: torch.device) -> Tensor:
    """Return the state of a device's generator."""
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


@contextmanager
def replayed(state: Tensor, device: torch.device) -> Iterator[None]:
    """Draw the same numbers as after `state`; afterwards, the generator goes on as before."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        if device.type == "cuda":
            torch.cuda.set_rng_state(state, device)
        else:
            torch.set_rng_state(state)
        yield


class EncoderPass:
    """Sentence embeddings of some examples: `texts`, one leaf (B, H) per column of text.

    `backward` propagates the gradients of the leaves through the encoder. One batch keeps its
    graph. Several batches are embedded without a graph, and in `backward` again with the same
    dropout (gradient caching; Gao et al., 2021, section 3). This needs the memory of only one
    batch, and one more forward pass.
    """

    def __init__(
        self, model: EncoderWithHeads, batches: Sequence[Batch], columns: int, task: str
    ) -> None:
        self.model, self.task = model, task
        self.batches = [batch.to(model.bi_encoder.device) for batch in batches]
        self.cached = len(batches) != 1
        self.states: list[Tensor] = []  # of the random generator before each pass, to repeat it
        found = []
        for batch in self.batches:
            self.states.append(random_state(batch.device))
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.cached):
                found.append(model.embed(batch, task))
        self.outputs = () if self.cached else found[0]
        none = torch.zeros(0, model.embedding_width(task), device=model.bi_encoder.device)
        texts = zip(*found, strict=True) if found else [(none,)] * columns
        self.texts = tuple(torch.cat(parts).detach().requires_grad_() for parts in texts)

    def backward(self, keep: bool = False) -> None:
        """Move the gradients of `texts` into the encoder; `keep` the graph for further ones."""
        leaves = self.texts
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in leaves]
        for one in leaves:
            one.grad = None
        if not self.model.trains_encoder_of(self.task):
            return
        if not self.cached:
            torch.autograd.backward(self.outputs, gradients, retain_graph=keep)
            return
        begin = 0
        for state, batch in zip(self.states, self.batches, strict=True):
            end = begin + batch.examples
            with replayed(state, batch.device):
                outputs = self.model.embed(batch, self.task)
            torch.autograd.backward(outputs, [gradient[begin:end] for gradient in gradients])
            begin = end


class Losses(NamedTuple):
    """A task's losses (scalars) on some examples, and the passes they were computed from."""

    by_objective: Mapping[str, Tensor]
    passes: Sequence[EncoderPass]

    @property
    def leaves(self) -> list[Tensor]:
        return [leaf for one in self.passes for leaf in one.texts]

    def through_encoder(self, keep: bool = False) -> None:
        """Move the gradients of the leaves into the encoder."""
        for one in self.passes:
            one.backward(keep)


class Part(NamedTuple):
    """Examples `indices` whose losses are computed together, with a `share` of the step's loss.

    `pieces` are the examples of this process among them, one array per pass of the encoder.
    """

    pieces: Sequence[np.ndarray]
    indices: np.ndarray
    share: float


@dataclass(frozen=True)
class CleanPass:
    """What a regulariser sees: examples of a task after one pass through encoder and head.

    `loss` is the task's first objective on these examples, `soft` the mean scores of its teachers
    for them, and `progress` the share of the run's steps before this
    one. `passes` has the encoder's pass, and then those of `another_pass`.
    """

    passes: list[EncoderPass]
    task: Task
    part: Part
    seed: int
    step: int
    progress: float
    targets: Tensor
    outputs: Outputs
    loss: Tensor
    soft: Tensor | None = None

    @property
    def model(self) -> EncoderWithHeads:
        return self.passes[0].model

    @property
    def texts(self) -> Embeddings:
        return self.passes[0].texts

    @property
    def batch(self) -> Batch:
        (batch,) = self.passes[0].batches
        return batch

    def embed(self, batch: Batch) -> Embeddings:
        """Embed the texts of a batch for the task's head."""
        return self.model.embed(batch, self.task.name)

    def head(self, texts: Embeddings) -> Outputs:
        return self.model.heads[self.task.name](*texts)

    def same_dropout(self) -> AbstractContextManager[None]:
        """Return a context that draws the dropout of the first pass again."""
        return replayed(self.passes[0].states[0], self.batch.device)

    def another_pass(self, batch: Batch) -> Outputs:
        """Pass the same examples, perhaps with noise, through encoder and head again."""
        self.passes.append(EncoderPass(self.model, [batch], batch.texts, self.task.name))
        return self.head(self.passes[-1].texts)

    def divergence(self, found: Outputs, expected: Outputs) -> Tensor:
        """Return the divergence between two outputs of the task, a scalar."""
        assert self.task.kind.divergence is not None, f"{self.task.name} has outputs to compare"
        return self.task.kind.divergence(found, expected)


class StepLosses:
    """The losses of each task on parts of its batches, with the terms of its regularisers.

    `epoch` counts from 1; the losses of a task may depend on it. `total_steps` are those of the
    whole run.
    """

    def __init__(
        self,
        model: EncoderWithHeads,
        tasks: Mapping[str, Task],
        splits: Splits,
        config: RunConfig,
        processes: Processes = Processes(),
    ) -> None:
        self.model, self.tasks, self.splits = model, tasks, splits
        self.config, self.processes = config, processes
        self.regularizers = [(one, one.checked_weights(tasks)) for one in config.regularizers]
        self.epoch = self.total_steps = 1

    def parts(self, name: str, batches: Sequence[np.ndarray]) -> Iterator[Part]:
        """Split a task's batches in a step into parts, at least one a batch.

        An encoder pass has at most `micro_batch` of this process' share of a batch. Each is a part,
        unless the losses compare the examples of a batch, those of all processes, or gradients at
        the embeddings are combined. The loss of a step is the sum of the means of the batches.
        """
        whole = self.tasks[name].compares_examples
        for indices in batches:
            own = self.processes.share(indices)
            size = self.config.micro_batch or max(1, len(own))
            pieces = [own[begin : begin + size] for begin in range(0, len(own), size)]
            if whole or self.config.on_embeddings or not pieces:
                together = indices if whole else own
                yield Part(pieces, together, len(together) / len(indices))
            else:
                for piece in pieces:
                    yield Part([piece], piece, len(piece) / len(indices))

    def __call__(self, name: str, part: Part, step: int) -> Losses:
        """Return a part's share of each objective's loss in the step, with regularisers."""
        task, split = self.tasks[name].in_epoch(self.epoch), self.splits[name]["train"]
        batches = [split.batch(piece) for piece in part.pieces]
        passes = [EncoderPass(self.model, batches, len(split.tokens), name)]
        texts, share = passes[0].texts, part.share
        if not len(part.indices):  # zeros that can be differentiated
            nothing = torch.stack([text.sum() for text in texts]).sum()
            return Losses(dict.fromkeys(task.objectives, nothing), passes)
        if task.compares_examples:  # every process computes the loss of all
            texts = tuple(self.processes.joined(text, len(part.indices)) for text in texts)
            share /= self.processes.count
        targets = split.targets(part.indices, self.model.bi_encoder.device)
        soft = split.soft_targets(part.indices, targets.device)
        outputs = self.model.heads[name](*texts)
        values = task.compute_losses(outputs, texts, targets)
        for loss in values.values():
            check(name, loss)
        progress, first = step / self.total_steps, task.objectives[0]
        about = task, part, self.config.seed, step, progress, targets, outputs, values[first], soft
        for regularizer, weights in self.regularizers:
            taught = soft is not None or not regularizer.learns_from_teacher
            if name in weights and taught and not self.model.trains_only_heads:
                term = regularizer.term(CleanPass(passes, *about))
                check(f"regularizer {regularizer.name}", term, or_zero=True)
                values[first] = values[first] + weights[name] * term
        return Losses({key: loss * share for key, loss in values.items()}, passes)


def check(what: str, value: Any, or_zero: bool = False) -> None:
    """Raise RunError unless a value is a loss, a tensor of one number with a gradient.

    Those of a user's own methods may be others; without a gradient one would train nothing.
    """
    one, trains = isinstance(value, Tensor) and not value.ndim, torch.is_grad_enabled()
    if not (one and (value.requires_grad or not trains or (or_zero and value == 0))):
        raise RunError(f"{what}: expected a tensor of one number with a gradient, found {value!r}")
