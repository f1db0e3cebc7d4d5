"""Passes of a step's examples through the encoder, and what a regulariser sees of them.

B examples, H width. A pass ends at leaves: the embeddings of its texts, detached from the encoder's
graph. Losses are differentiated down to the leaves first, and from there through the encoder.

Dropout is drawn from PyTorch's generator, which each step seeds by the run's seed, the number of
the step and the process. A resumed run thus draws what the run would have drawn, and a checkpoint
needs no state of a generator.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from minbert.batching import Batch
from multitask.model import EncoderWithHeads
from multitask.sampling import generator
from tasks.base import Task
from tasks.kinds import Outputs


def seed_step(seed: int, step: int, rank: int) -> None:
    """Seed the generators of all devices for a step of one process."""
    torch.manual_seed(int(generator(seed, "dropout", step, rank).integers(1 << 63)))


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
        self.model, self.task, device = model, task, model.bi_encoder.device
        self.batches = [batch.to(device) for batch in batches]
        self.cached = len(batches) != 1
        self.states: list[Tensor] = []  # of the random generator before each pass, to repeat it
        found = []
        for batch in self.batches:
            cuda = device.type == "cuda"
            self.states.append(torch.cuda.get_rng_state(device) if cuda else torch.get_rng_state())
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.cached):
                found.append(model.embed(batch, task))
        self.outputs = () if self.cached else found[0]
        none = torch.zeros(0, model.embedding_width(task), device=device)
        texts = zip(*found, strict=True) if found else [(none,)] * columns
        self.texts = tuple(torch.cat(parts).detach().requires_grad_() for parts in texts)

    def backward(self, keep: bool = False) -> None:
        """Move the gradients of `texts` into the encoder; `keep` the graph for further ones."""
        gradients = [torch.zeros_like(one) if one.grad is None else one.grad for one in self.texts]
        for one in self.texts:
            one.grad = None
        if self.model.trains_only_heads:
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
    for them, and `progress` the share of the run's steps before this one. `passes` has the
    encoder's pass, and then those of `another_pass`.
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
    def batch(self) -> Batch:
        (batch,) = self.passes[0].batches
        return batch

    def same_dropout(self) -> AbstractContextManager[None]:
        """Return a context that draws the dropout of the first pass again."""
        return replayed(self.passes[0].states[0], self.batch.device)

    def another_pass(self, batch: Batch) -> Outputs:
        """Pass the same examples, perhaps with noise, through encoder and head again."""
        self.passes.append(EncoderPass(self.model, [batch], batch.texts, self.task.name))
        return self.model.heads[self.task.name](*self.passes[-1].texts)
