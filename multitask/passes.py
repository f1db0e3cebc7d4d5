"""Parts of a step's batches, and their forward and backward passes through the encoder.

B examples, H width. A pass ends at leaves: the embeddings of its texts, detached from the encoder's
graph. Losses are differentiated down to the leaves first, and from there through the encoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from minbert.batching import Batch
from multitask.distributed import Processes
from multitask.model import EncoderWithHeads
from multitask.random_state import random_state, replayed
from tasks.base import Task


@dataclass(frozen=True)
class Part:
    """Examples `indices` whose losses are computed together, with a `share` of the step's loss.

    `pieces` are the examples of this process among them, one array per pass of the encoder.
    """

    pieces: tuple[np.ndarray, ...]
    indices: np.ndarray
    share: float


def parts_of(
    task: Task,
    batches: Sequence[np.ndarray],
    processes: Processes,
    micro_batch: int | None,
    one_part: bool,
) -> Iterator[Part]:
    """Split a task's batches in a step into parts, with at most `micro_batch` examples per piece.

    Each piece is a part, or with `one_part` each batch. Losses that compare the examples of a batch
    have those of all processes. The loss of a step is the sum of the means of the batches.
    """
    for indices in batches:
        pieces = tuple(pieces_of(indices, processes, micro_batch))
        if one_part:
            own = indices if task.compares_examples else processes.share(indices)
            yield Part(pieces, own, len(own) / len(indices))
        else:
            for piece in pieces:
                yield Part((piece,), piece, len(piece) / len(indices))


def pieces_of(
    indices: np.ndarray, processes: Processes, micro_batch: int | None
) -> Iterator[np.ndarray]:
    """Split this process' share of a batch into pieces of at most `micro_batch` examples."""
    local = processes.share(indices)
    size = micro_batch or max(1, len(local))
    for begin in range(0, len(local), size):
        yield local[begin : begin + size]


def loss_fault(value: object, zero: bool = False) -> str | None:
    """Return why a value cannot be a loss, or None: a loss is a tensor of one number.

    It has a gradient where gradients are computed: any other constant would train nothing. With
    `zero`, 0 needs none.
    """
    if not isinstance(value, Tensor):
        return type(value).__name__
    if value.ndim:
        return f"a tensor of {' x '.join(map(str, value.shape))} numbers"
    if value.requires_grad or not torch.is_grad_enabled() or (zero and value == 0):
        return None
    return f"{float(value):g} without a gradient"


class EncoderPass:
    """Sentence embeddings of some examples: `texts`, one leaf (B, H) per column of text.

    `backward` propagates gradients of the texts through the encoder. One batch keeps its graph.
    Several batches are embedded without a graph, and in `backward` again with the same dropout
    (gradient caching; Gao et al., 2021, section 3). This needs the memory of only one batch, and
    one more forward pass.
    """

    def __init__(
        self,
        model: EncoderWithHeads,
        batches: Sequence[Batch],
        columns: int,
        task: str | None = None,
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

    def backward(self, gradients: Sequence[Tensor], keep: bool = False) -> None:
        """Propagate gradients of `texts` into the encoder; `keep` the graph for further ones."""
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


@dataclass(frozen=True)
class LeafLosses:
    """A task's losses (scalars) on some examples, and the passes they were computed from."""

    by_objective: Mapping[str, Tensor]
    passes: Sequence[EncoderPass]

    def backward(self, loss: Tensor, keep: bool = False) -> None:
        """Differentiate a loss through leaves and encoder; `keep` the graphs for further losses."""
        self.through_encoder(self.leaf_gradients(loss, keep), keep)

    def rows(self) -> Tensor:
        """Return the gradients at all leaves, one row per loss: (m, values of the leaves)."""
        last = len(self.by_objective) - 1
        return torch.stack(
            [
                torch.cat([one.flatten() for one in self.leaf_gradients(loss, index < last)])
                for index, loss in enumerate(self.by_objective.values())
            ]
        )

    def backward_row(self, row: Tensor) -> None:
        """Propagate a gradient at all leaves, such as a row of `rows`, through the encoder."""
        parts = row.split([leaf.numel() for leaf in self.leaves])
        pairs = zip(parts, self.leaves, strict=True)
        self.through_encoder([part.view_as(leaf) for part, leaf in pairs], keep=False)

    @property
    def leaves(self) -> list[Tensor]:
        return [leaf for one in self.passes for leaf in one.texts]

    def leaf_gradients(self, loss: Tensor, keep: bool) -> list[Tensor]:
        """Return the gradients of a loss at the leaves; the heads accumulate theirs."""
        loss.backward(retain_graph=keep)
        found = []
        for leaf in self.leaves:
            found.append(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad)
            leaf.grad = None
        return found

    def through_encoder(self, gradients: Sequence[Tensor], keep: bool) -> None:
        begin = 0
        for one in self.passes:
            end = begin + len(one.texts)
            one.backward(gradients[begin:end], keep)
            begin = end
