"""Texts of several tasks through the encoder, each text once where the tasks allow it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from minbert.batching import TokenLists, concatenated
from minbert.encoder import Encoder
from minbert.layer_copies import BranchedEncoder, shared_layers
from minbert.pooling import POOLINGS
from multitask.model import EncoderWithHeads

EncoderOf = Callable[[str | None], nn.Module]


@dataclass(frozen=True)
class Reading:
    """Tasks whose texts one encoder turns into embeddings: that of `task`, None for the shared one.

    `tokens` has the sequences of each text of each task.
    """

    task: str | None
    tokens: Mapping[str, Sequence[TokenLists]]

    @cached_property
    def all_tokens(self) -> TokenLists:
        return concatenated([one for several in self.tokens.values() for one in several])

    @cached_property
    def distinct(self) -> tuple[TokenLists, np.ndarray]:
        """The distinct sequences, and the index in them of each sequence of `all_tokens`."""
        rows, which = self.all_tokens.distinct()
        return self.all_tokens.select(rows), which

    def spread(self, vectors: np.ndarray, device: torch.device) -> dict[str, tuple[Tensor, ...]]:
        """Return the embeddings (n, H) of each text by task, from those of the distinct ones."""
        lengths = [len(one) for several in self.tokens.values() for one in several]
        every = torch.from_numpy(np.ascontiguousarray(vectors[self.distinct[1]])).to(device)
        parts = iter(every.split(lengths))
        return {name: tuple(next(parts) for _ in several) for name, several in self.tokens.items()}


def embed_tasks(
    model: EncoderWithHeads, encoder_of: EncoderOf, tokens: Mapping[str, Sequence[TokenLists]]
) -> dict[str, tuple[Tensor, ...]]:
    """Map the tokens of each task's texts, of n examples, to embeddings, each (n, H).

    Tasks with one encoder and pooling share a pass, in which equal sequences are encoded once.
    Branched tasks that read the same texts share the layers below their branches. `encoder_of` a
    task returns the encoder with its own layers; of None, the shared one.
    """
    readings = readings_of(model, tokens)
    together: dict[bytes, list[Reading]] = {}
    found: dict[str, tuple[Tensor, ...]] = {}
    for one in readings:
        if len(model.branches) and model.pooling_of(one.task) is None:
            together.setdefault(content(one.distinct[0]), []).append(one)
        else:
            found |= embed_alone(model, encoder_of(one.task), one)
    for several in together.values():
        encoders = [encoder_of(one.task) for one in several]
        layered = [one for one in encoders if isinstance(one, Encoder)]
        if 1 < len(layered) == len(several) and shared_layers(layered):
            found |= embed_branches(model, BranchedEncoder(layered), several)
        else:
            for encoder, one in zip(encoders, several, strict=True):
                found |= embed_alone(model, encoder, one)
    return found


def readings_of(
    model: EncoderWithHeads, tokens: Mapping[str, Sequence[TokenLists]]
) -> list[Reading]:
    """Group tasks by their encoder and by whether they read two texts as one sequence.

    A task is a group of its own if its head pools the tokens itself, or if it has own layers.
    """
    groups: dict[tuple[str | None, bool], dict[str, Sequence[TokenLists]]] = {}
    for name, texts in tokens.items():
        own = model.pooling_of(name) is not None or name in model.branches
        key = name if own else None, texts[0].segments is not None
        groups.setdefault(key, {})[name] = texts
    return [Reading(task, several) for (task, _), several in groups.items()]


def content(tokens: TokenLists) -> bytes:
    """Return what is equal for equal sequences in the same order."""
    segments = b"" if tokens.segments is None else tokens.segments.tobytes()
    return b" ".join((tokens.ids.tobytes(), tokens.lengths.tobytes(), segments))


def embed_alone(
    model: EncoderWithHeads, encoder: nn.Module, reading: Reading
) -> dict[str, tuple[Tensor, ...]]:
    """Return the embeddings (n, H) of each text by task, from one encoder."""
    pool, width = model.pooling_of(reading.task), model.embedding_width(reading.task)
    vectors = model.bi_encoder.encode_window(encoder, reading.distinct[0], pool=pool, width=width)
    return reading.spread(vectors, model.bi_encoder.device)


def embed_branches(
    model: EncoderWithHeads, encoder: BranchedEncoder, readings: Sequence[Reading]
) -> dict[str, tuple[Tensor, ...]]:
    """Return the embeddings (n, H) of each text by task, from one branch for each reading."""
    pool, width = POOLINGS[model.bi_encoder.pooling], model.bi_encoder.width * len(readings)
    tokens = readings[0].distinct[0]
    vectors = model.bi_encoder.encode_window(encoder, tokens, pool=pool, width=width)
    found: dict[str, tuple[Tensor, ...]] = {}
    for one, part in zip(readings, np.hsplit(vectors, len(readings)), strict=True):
        found |= one.spread(part, model.bi_encoder.device)
    return found
