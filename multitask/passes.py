"""Parts of a step's batches, their passes through the encoder, and the way back.

B examples, H width. A pass ends at leaves: the embeddings of its texts, cut off from the encoder's
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
from tasks.base import Task


@dataclass(frozen=True)
class Part:
    """Examples `indices` whose losses are computed together, their `share` of the step's.

    `pieces` are this process' examples among them, one array per pass of the encoder.
    """

    pieces: tuple[np.ndarray, ...]
    indices: np.ndarray
    share: float


def parts_of(
    task: Task, batches: Sequence[np.ndarray], processes: Processes, micro_batch: int | None
) -> Iterator[Part]:
    """Split a task's batches in a step into parts, with at most `micro_batch` examples per piece.

    Each piece is a part, but where the losses compare the examples of a batch, the batch is one.
    """
    total = sum(len(indices) for indices in batches)
    for indices in batches:
        if task.in_batch:
            yield whole_part(task, indices, processes, micro_batch, len(indices) / total)
        else:
            for piece in pieces_of(indices, processes, micro_batch):
                yield Part((piece,), piece, len(piece) / total)


def whole_part(
    task: Task,
    indices: np.ndarray,
    processes: Processes,
    micro_batch: int | None,
    share: float = 1.0,
) -> Part:
    """Return a batch as one part; for a loss over the batch with other processes' examples, too."""
    pieces = tuple(pieces_of(indices, processes, micro_batch))
    if task.in_batch:
        return Part(pieces, indices, share)
    mine = processes.share(indices)
    return Part(pieces, mine, share * len(mine) / len(indices))


def pieces_of(
    indices: np.ndarray, processes: Processes, micro_batch: int | None
) -> Iterator[np.ndarray]:
    """Split this process' share of a batch into pieces of at most `micro_batch` examples."""
    mine = processes.share(indices)
    size = micro_batch or max(1, len(mine))
    for begin in range(0, len(mine), size):
        yield mine[begin : begin + size]


class EncoderPass:
    """Sentence embeddings of some examples: `texts`, one leaf (B, H) per column of text.

    `backward` takes gradients of the leaves on through the encoder. One batch keeps its graph.
    Several batches are embedded without a graph, and again with the same dropout when a gradient
    comes (gradient caching; Gao et al., 2021, section 3): this needs memory for one of them, and
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
        self.numbers: list[int] = []  # of the dropout stream, by which a pass can be repeated
        found = []
        for batch in self.batches:
            with torch.set_grad_enabled(torch.is_grad_enabled() and not self.cached):
                found.append(model.embed(batch, task))
            self.numbers.append(model.dropout_stream.passes)
        self.outputs = () if self.cached else found[0]
        none = torch.zeros(0, model.embedding_width(task), device=model.bi_encoder.device)
        texts = zip(*found, strict=True) if found else [(none,)] * columns
        self.texts = tuple(torch.cat(parts).detach().requires_grad_() for parts in texts)

    def backward(self, gradients: Sequence[Tensor], keep: bool = False) -> None:
        """Take gradients of `texts` through the encoder; `keep` the graph for further ones."""
        if self.model.frozen:
            return
        if not self.cached:
            torch.autograd.backward(self.outputs, gradients, retain_graph=keep)
            return
        begin = 0
        for number, batch in zip(self.numbers, self.batches, strict=True):
            end = begin + batch.examples
            with self.model.dropout_stream.replay(number):
                outputs = self.model.embed(batch, self.task)
            torch.autograd.backward(outputs, [gradient[begin:end] for gradient in gradients])
            begin = end


@dataclass(frozen=True)
class LeafLosses:
    """A task's losses (scalars) of some examples, and the passes they were computed from.

    In a loss over a batch that several processes share, each process computes all of it from
    leaves that are partly its own. `copies` is their number: the losses were divided by it, so
    that values and gradients of heads add up, and the gradients of the leaves grow by it.
    """

    by_objective: Mapping[str, Tensor]
    passes: Sequence[EncoderPass]
    copies: int = 1

    def backward(self, loss: Tensor, keep: bool = False) -> None:
        """Differentiate a loss through leaves and encoder; `keep` the graphs for further losses."""
        self.through_encoder(self.leaf_gradients(loss, keep), keep)

    def rows(self) -> Tensor:
        """Return the gradient of each loss at all leaves in one row: (m, values of the leaves)."""
        last = len(self.by_objective) - 1
        return torch.stack(
            [
                torch.cat([one.flatten() for one in self.leaf_gradients(loss, place < last)])
                for place, loss in enumerate(self.by_objective.values())
            ]
        )

    def backward_row(self, row: Tensor) -> None:
        """Take a gradient at all leaves, as a row of `rows`, through the encoder."""
        parts = row.split([leaf.numel() for leaf in self.leaves])
        pairs = zip(parts, self.leaves, strict=True)
        self.through_encoder([part.view_as(leaf) for part, leaf in pairs], keep=False)

    @property
    def leaves(self) -> list[Tensor]:
        return [text for one in self.passes for text in one.texts]

    def leaf_gradients(self, loss: Tensor, keep: bool) -> list[Tensor]:
        """Return the gradients of a loss at the leaves; those of heads are added up there."""
        loss.backward(retain_graph=keep)
        found = []
        for leaf in self.leaves:
            found.append(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad * self.copies)
            leaf.grad = None
        return found

    def through_encoder(self, gradients: Sequence[Tensor], keep: bool) -> None:
        begin = 0
        for one in self.passes:
            end = begin + len(one.texts)
            one.backward(gradients[begin:end], keep)
            begin = end
