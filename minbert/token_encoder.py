"""The interface that transformer and BiLSTM share, and the pieces of their embeddings."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from minbert.batching import Batch
from minbert.dropout import DropoutStream


class Sizes(Protocol):
    """Sizes that a configuration of any encoder has."""

    @property
    def max_tokens(self) -> int: ...


class TokenEncoder(Protocol):
    """An encoder of packed tokens: a call turns a batch of T tokens into states (T, H)."""

    training: bool
    stream: DropoutStream

    @property
    def config(self) -> Sizes: ...

    def __call__(self, batch: Batch) -> Tensor: ...


def empty_embedding(rows: int, width: int) -> nn.Embedding:
    """Return an embedding with uninitialised weights.

    PyTorch's initialisation would be overwritten, and on the meta device it loads the compiler.
    """
    return nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)


def add_noise(vectors: Tensor, batch: Batch, place: str) -> Tensor:
    """Add the batch's adversarial noise to vectors (T, H) if its `noise_place` is `place`."""
    if batch.noise is None or batch.noise_place != place:
        return vectors
    return vectors + batch.noise


def begin_pass(encoder: TokenEncoder, batch: Batch) -> None:
    """Begin a pass through either encoder; raise ValueError for a sequence that is too long."""
    if batch.longest > encoder.config.max_tokens:
        raise ValueError(
            f"sequence: expected at most {encoder.config.max_tokens} tokens, found {batch.longest}"
        )
    if encoder.training:
        encoder.stream.next_pass()
