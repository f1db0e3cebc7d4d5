"""Conversion of text to token ids with Hugging Face's `tokenizers`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from common.errors import Notice
from common.files import atomic_write_text
from minbert.batching import TokenLists, offsets_of
from minbert.joined_pairs import PairTemplate, PairTokens
from minbert.sentences import check_texts, portions

CHUNK = 2048  # texts tokenised at once; limits the memory of the library's result objects
# Characters per token that are tokenised of a text of any length, if so many tokens come of them.
AMPLE = 32
LONG_PAIR = 4  # pairs of more than so many characters per token of the limit use `joined`


class Tokenizer:
    """Tokenizer that adds special tokens, truncates to `max_tokens` and never pads.

    Truncation and padding settings of a `tokenizer.json` are ignored: all-MiniLM's file would pad
    every sentence to 128 tokens.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        max_tokens: int,
        lower: bool = False,
        settings: dict[str, Any] | None = None,
    ) -> None:
        backend.no_padding()
        backend.no_truncation()
        self.pair_template = PairTemplate.of(backend)
        self.backend, self.max_tokens, self.lower = backend, max_tokens, lower
        self.settings = settings or {}
        names = self.settings.get("model_input_names") or ("token_type_ids",)
        self.has_segments = "token_type_ids" in names
        backend.enable_truncation(max_tokens)

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenLists:
        """Tokenise n texts; with `pairs`, as `[CLS] text [SEP] pair [SEP]` with segments.

        Raises TypeError for anything that is not a string, for example a pair instead of a text.
        """
        for column in (texts, pairs or ()):
            check_texts(column)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"pairs: expected {len(texts)} of them, found {len(pairs)}")
        ids, segments = [np.zeros(0, np.int32)], [np.zeros(0, np.int8)]
        lengths, truncated = list[int](), list[bool]()
        for some in portions(CHUNK, texts, pairs):
            inputs = self.cased(texts[some])
            if pairs is None:
                chunk = self.heads(inputs)
            else:
                chunk = self.pairs(inputs, self.cased(pairs[some]))
            ids.append(np.concatenate([np.array(one.ids, np.int32) for one in chunk]))
            lengths += [len(one.ids) for one in chunk]
            truncated += [bool(one.overflowing) for one in chunk]
            if pairs is not None:
                types = np.concatenate([np.array(one.type_ids, np.int8) for one in chunk])
                segments.append(types if self.has_segments else np.zeros_like(types))
        return TokenLists(
            ids=np.concatenate(ids),
            offsets=offsets_of(np.array(lengths, np.int64)),
            truncated=np.array(truncated, np.bool_),
            segments=None if pairs is None or not len(texts) else np.concatenate(segments),
        )

    def heads(self, texts: Sequence[str]) -> list[Any]:
        """Encode cased texts; of a very long one only the beginning, if it fills the limit."""
        most = AMPLE * self.max_tokens
        begins = [beginning(text, most) for text in texts]
        found = self.backend.encode_batch_fast(begins)
        for number, (text, begin) in enumerate(zip(texts, begins, strict=True)):
            if len(begin) < len(text) and not found[number].overflowing:
                found[number] = self.backend.encode_batch_fast([text])[0]
        return found

    def pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> list[Any]:
        """Encode pairs of cased texts, each in one sequence."""
        both = list(zip(firsts, seconds, strict=True))
        if not self.pair_template.fits(self.max_tokens):
            return list(self.backend.encode_batch_fast(both))
        most = LONG_PAIR * self.max_tokens
        short = [len(first) + len(second) <= most for first, second in both]
        found = iter(self.backend.encode_batch_fast(list(compress(both, short))))
        return [
            next(found) if is_short else self.joined(*pair)
            for pair, is_short in zip(both, short, strict=True)
        ]

    def joined(self, first: str, second: str) -> PairTokens:
        """Encode a pair of long texts like the library, in less memory."""
        found = self.backend.encode_batch_fast([first, second], add_special_tokens=False)
        texts = [[*one.ids, *(i for part in one.overflowing for i in part.ids)] for one in found]
        return self.pair_template.join(texts, self.max_tokens)

    def cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`, which transformers opens."""
        self.backend.no_truncation()
        content = self.backend.to_str(pretty=True)
        self.backend.enable_truncation(self.max_tokens)
        atomic_write_text(folder / "tokenizer.json", content)
        settings = self.settings | {"model_max_length": self.max_tokens}
        atomic_write_text(folder / "tokenizer_config.json", json.dumps(settings, indent=2))


def beginning(text: str, characters: int) -> str:
    """Return about the first `characters` of a text of twice as many, up to a white space.

    Its tokens are the first ones of the text, because no token has a white space inside.
    """
    if len(text) <= 2 * characters:
        return text
    end = max(text.rfind(" ", 0, characters), text.rfind("\n", 0, characters))
    return text[:end].rstrip() or text


def truncation(cut: int, total: int, texts: str, max_tokens: int) -> str:
    """Return `12 of 8,544 train texts are longer than 256 tokens and were cut`."""
    longer, were = ("is", "was") if cut == 1 else ("are", "were")
    return f"{cut:,} of {total:,} {texts} {longer} longer than {max_tokens} tokens and {were} cut"


def warn_of_truncation(cut: int, total: int, texts: str, max_tokens: int) -> None:
    """Warn the caller's caller if any texts were cut."""
    if cut:
        warnings.warn(truncation(cut, total, texts, max_tokens), Notice, stacklevel=3)
