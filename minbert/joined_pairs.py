"""Two texts in one sequence, with the tokens that Hugging Face's `tokenizers` would give.

The library keeps every combination of the parts that it cuts off the two texts, so that its memory
grows with the product of their lengths. Here it grows with the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import tokenizers


class PairTokens(NamedTuple):
    """The tokens of a pair in one sequence, with the names of the library's `Encoding`."""

    ids: list[int]
    type_ids: list[int]
    overflowing: bool


class PairTemplate:
    """The special tokens of a tokenizer around two texts, found in an example without truncation.

    `parts` are (side, ids, segments): side 0 or 1 for a text, and None for special tokens.
    """

    def __init__(self, backend: tokenizers.Tokenizer) -> None:
        example = backend.encode("a", "a")
        tokens = zip(example.sequence_ids, example.ids, example.type_ids, strict=True)
        parts = [(side, list(group)) for side, group in groupby(tokens, key=itemgetter(0))]
        self.parts = [(side, *map(list, zip(*group, strict=True))) for side, group in parts]
        self.special = example.special_tokens_mask.count(1)

    def join(
        self, first: tokenizers.Encoding, second: tokenizers.Encoding, max_tokens: int
    ) -> PairTokens:
        """Join two texts without special tokens, each cut to `max_tokens`, and cut the pair."""
        texts = first.ids, second.ids
        lengths = [len(one) + sum(map(len, one.overflowing)) for one in (first, second)]
        kept = longest_first(lengths, max_tokens - self.special)
        pair = PairTokens([], [], kept != lengths)
        for side, _, ids, types in self.parts:
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
    shorter = min(*lengths, room // 2)
    kept = [shorter, room - shorter]
    return kept[::-1] if lengths[0] > lengths[1] else kept
