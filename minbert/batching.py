"""Token ids of many sentences, length buckets, and packed batches without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class TokenLists:
    """Token ids of n sequences, concatenated.

    `ids` (total,) int32; `offsets` (n + 1,) int64: sequence i is `ids[offsets[i]:offsets[i + 1]]`;
    `truncated` (n,) bool: sequences that were cut to the tokenizer's limit; `segments` (total,)
    int8 or None: token types of two texts joined in one sequence.
    """

    ids: np.ndarray
    offsets: np.ndarray
    truncated: np.ndarray
    segments: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each sequence, special tokens included (n,)."""
        return np.diff(self.offsets)

    def select(self, rows: np.ndarray) -> TokenLists:
        """Return the sequences `rows`, in that order."""
        index = concatenated_ranges(self.offsets, rows)
        return TokenLists(
            self.ids[index],
            offsets_of(self.lengths[rows]),
            self.truncated[rows],
            None if self.segments is None else self.segments[index],
        )

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of distinct sequences (d,), and each sequence's index in them (n,)."""
        first: dict[bytes, int] = {}  # the content of a sequence -> its first row
        firsts = np.empty(len(self), np.int64)
        for row, tokens in enumerate(map(slice, self.offsets[:-1], self.offsets[1:])):
            key = self.ids[tokens].tobytes()
            if self.segments is not None:
                key += self.segments[tokens].tobytes()
            firsts[row] = first.setdefault(key, row)
        return np.unique(firsts, return_inverse=True)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return where parts of these lengths (n,) begin and where the last one ends: (n + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)])


def concatenated_ranges(offsets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the numbers from `offsets[i]` to below `offsets[i + 1]` for each i of `rows`."""
    lengths = np.diff(offsets)[rows]
    return np.repeat(offsets[rows] - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())


def concatenated(several: Sequence[TokenLists]) -> TokenLists:
    """Concatenate lists of sequences; either all of them have segments or none has."""
    lengths = np.concatenate([one.lengths for one in several])
    segments = [one.segments for one in several if one.segments is not None]
    return TokenLists(
        np.concatenate([one.ids for one in several]),
        offsets_of(lengths),
        np.concatenate([one.truncated for one in several]),
        np.concatenate(segments) if segments else None,
    )


@dataclass(frozen=True)
class Batch:
    """The real tokens of S sequences, concatenated: T tokens, no padding.

    `ids` (T,); `segments` (T,) if two texts share a sequence; `noise` (T, H), added to
    the output of the embedding module; `lengths` (S,), kept on the CPU.
    With `texts` = 2, the first S / 2 sequences are the first texts of the examples, and the others
    are their second texts. One pass through the encoder thus embeds both texts of a pair.
    """

    lengths: Tensor
    ids: Tensor
    segments: Tensor | None = None
    noise: Tensor | None = None
    texts: int = 1

    @property
    def device(self) -> torch.device:
        return self.ids.device

    @property
    def examples(self) -> int:
        return len(self.lengths) // self.texts

    @cached_property
    def tokens(self) -> int:
        """T, computed without waiting for the device."""
        return int(self.lengths.sum())

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max())

    @cached_property
    def device_lengths(self) -> Tensor:
        """`lengths` on the device of the tokens (S,)."""
        return to_device(self.lengths, self.device)

    @cached_property
    def boundaries(self) -> Tensor:
        """Start of each sequence and end of the last one, int32 (S + 1,)."""
        return F.pad(self.device_lengths.cumsum(0), (1, 0)).int()

    @cached_property
    def starts(self) -> Tensor:
        """Index of each sequence's first token (S,)."""
        return self.device_lengths.cumsum(0) - self.device_lengths

    @cached_property
    def sequence(self) -> Tensor:
        """Sequence of each token (T,)."""
        return torch.repeat_interleave(self.device_lengths, output_size=self.tokens)

    @cached_property
    def example_index(self) -> Tensor:
        """Example of each token, for all texts of the example (T,)."""
        return self.sequence % self.examples

    @cached_property
    def positions(self) -> Tensor:
        """Position of each token in its sequence, from 0 (T,)."""
        return torch.arange(self.tokens, device=self.device) - self.starts[self.sequence]

    def split(self, embeddings: Tensor) -> tuple[Tensor, ...]:
        """Split sentence embeddings (S, H) into one (S / texts, H) tensor per text."""
        return embeddings.chunk(self.texts)

    def to(self, device: torch.device | str) -> Batch:
        """Return the same batch with its tokens on `device`."""
        device = torch.device(device)
        if self.device == device:
            return self
        tensors = {"ids": self.ids, "segments": self.segments, "noise": self.noise}
        moved: dict[str, Any] = {
            k: to_device(t, device) for k, t in tensors.items() if t is not None
        }
        return replace(self, **moved)


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Return the tensor on `device`; copies to a GPU are asynchronous, from pinned memory."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def pack(texts: Sequence[TokenLists], rows: np.ndarray) -> Batch:
    """Pack the examples `rows` of each text's sequences into one batch, first texts first."""

    def joined(parts: list[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.concatenate(parts).astype(np.int64))

    index = [(tokens, concatenated_ranges(tokens.offsets, rows)) for tokens in texts]
    segments = None
    if any(tokens.segments is not None for tokens in texts):
        kinds = ((tokens.segments, i) for tokens, i in index)
        segments = joined([np.zeros(len(i)) if kind is None else kind[i] for kind, i in kinds])
    return Batch(
        lengths=joined([tokens.lengths[rows] for tokens in texts]),
        ids=joined([tokens.ids[i] for tokens, i in index]),
        segments=segments,
        texts=len(texts),
    )


def sorted_batches(lengths: np.ndarray, max_tokens: int) -> list[np.ndarray]:
    """Split all rows, longest first, into batches of at most `max_tokens` cells, for inference.

    Cells are rows times the longest row's tokens; a row with more tokens is a batch of its own.
    With the longest first, a lack of memory shows at once, and the time left is not underestimated.
    """
    order = np.argsort(-lengths, kind="stable")
    batches, begin = [], 0
    while begin < len(order):
        size = max(1, max_tokens // max(1, int(lengths[order[begin]])))
        batches.append(order[begin : begin + size])
        begin += size
    return batches


def bucketed_batches(
    lengths: np.ndarray, batch_size: int, generator: np.random.Generator, window: int = 50
) -> list[np.ndarray]:
    """Split all rows into random batches of similar length, for training.

    Rows are shuffled and split into windows of `window` batches. Each window is sorted by length
    and split into batches. Finally all batches are shuffled. The composition and the order of the
    batches thus stay random, while attention needs little padding.
    """
    order = generator.permutation(len(lengths))
    batches = []
    for begin in range(0, len(order), window * batch_size):
        rows = order[begin : begin + window * batch_size]
        rows = rows[np.argsort(lengths[rows], kind="stable")]
        batches += [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
    return [batches[i] for i in generator.permutation(len(batches))]
