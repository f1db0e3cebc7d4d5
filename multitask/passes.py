"""Passes through the encoder that end at leaves, and the way back into it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from minbert.batching import Batch
from multitask.model import EncoderWithHeads


class EncoderPass:
    """Sentence embeddings of some examples: `texts`, one leaf (B, H) a column of text.

    Losses are computed on the leaves; `backward` takes their gradients on through the encoder. One
    batch keeps its graph. Several are embedded without one, and again with the same dropout when a
    gradient comes (gradient caching; Gao et al., 2021, section 3): memory for one of them, at the
    price of a further forward.
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
        self.numbers: list[int] = []  # of dropout
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
        """Gradients on `texts` -> on the encoder; `keep` the graph if more are to come."""
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
    leaves that are partly its own: `copies` is their number, by which the losses were divided so
    that values and gradients of heads add up, and by which the gradients on the leaves grow.
    """

    by_objective: Mapping[str, Tensor]
    passes: Sequence[EncoderPass]
    copies: int = 1

    def each(self) -> Iterator[tuple[list[Tensor], bool]]:
        """One loss' gradients on all leaves after the other; whether more need the graph."""
        last = len(self.by_objective) - 1
        for number, loss in enumerate(self.by_objective.values()):
            more = number < last
            yield self.leaf_gradients(loss, keep=more), more

    def leaf_gradients(self, loss: Tensor, keep: bool = False) -> list[Tensor]:
        """The gradients of one of the losses on all leaves; those on heads are added up there."""
        loss.backward(retain_graph=keep)
        found = []
        for leaf in (text for one in self.passes for text in one.texts):
            found.append(torch.zeros_like(leaf) if leaf.grad is None else leaf.grad * self.copies)
            leaf.grad = None
        return found

    def backward(self, gradients: Sequence[Tensor], keep: bool = False) -> None:
        """Gradients on all leaves, through the encoder."""
        begin = 0
        for one in self.passes:
            end = begin + len(one.texts)
            one.backward(gradients[begin:end], keep)
            begin = end
