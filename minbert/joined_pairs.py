"""Two long texts in one sequence, with the tokens that Hugging Face's `tokenizers` would give.

The library keeps every combination of the parts that it cuts off the two texts, so that its memory
grows with the product of their lengths. Here it grows with the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import tokenizers


class PairTokens(NamedTuple):
    """The tokens of a pair in one sequence, with the names of the library's `Encoding`."""

    ids: list[int]
    type_ids: list[int]
    overflowing: bool


@dataclass(frozen=True)
class PairTemplate:
    """The parts of a pair in one sequence: side, ids and segments.

    The side is 0 or 1 for a text, in this example one letter, and None for special tokens.
    """

    parts: Sequence[tuple[int | None, list[int], list[int]]]

    @classmethod
    def of(cls, backend: tokenizers.Tokenizer) -> PairTemplate:
        """Return the template of a tokenizer that does not truncate."""
        example = backend.encode("a", "a")
        tokens = zip(example.sequence_ids, example.ids, example.type_ids, strict=True)
        parts = []
        for side, group in groupby(tokens, key=itemgetter(0)):
            _, ids, types = zip(*group, strict=True)
            parts.append((side, [*ids], [*types]))
        return cls(parts)

    @cached_property
    def special(self) -> int:
        """Number of special tokens."""
        return sum(len(ids) for side, ids, _ in self.parts if side is None)

    def fits(self, max_tokens: int) -> bool:
        """Return whether `join` does as the library: each text once, beside fewer special tokens.

        A template without its texts is of a tokenizer that has no token for the letter.
        """
        sides = sorted(side for side, _, _ in self.parts if side is not None)
        return sides == [0, 1] and self.special < max_tokens

    def join(self, texts: Sequence[Sequence[int]], max_tokens: int) -> PairTokens:
        """Join the ids of two texts, without special tokens, and cut them to `max_tokens`."""
        lengths = [len(text) for text in texts]
        kept = longest_first(lengths, max_tokens - self.special)
        pair = PairTokens([], [], kept != lengths)
        for side, ids, types in self.parts:
            several = ids if side is None else texts[side][: kept[side]]
            pair.ids.extend(several)
            pair.type_ids.extend(types if side is None else types[:1] * len(several))
        return pair


def longest_first(lengths: Sequence[int], room: int) -> list[int]:
    """Return how many tokens of two texts are kept, at most `room` in all.

    The longer text is cut first. If both are cut and `room` is odd, the longer one keeps one token
    more, or the second one if they are equally long, as in the library.
    """
    if sum(lengths) <= room:
        return [*lengths]
    shorter = min(min(lengths), room // 2)
    kept = [shorter, room - shorter]
    return kept[::-1] if lengths[0] > lengths[1] else kept
