"""Conversion of text to token ids with Hugging Face's `tokenizers`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from common.errors import Notice
from common.files import atomic_write_text
from minbert.batching import TokenLists, offsets_of
from minbert.joined_pairs import PairTemplate, PairTokens
from minbert.sentences import check_texts

CHUNK = 2048  # texts tokenised at once; limits the memory of the library's result objects


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
        self.pair_template = PairTemplate(backend)
        self.backend, self.max_tokens, self.lower = backend, max_tokens, lower
        self.settings = settings or {}  # of `tokenizer_config.json`
        names = self.settings.get("model_input_names") or ("token_type_ids",)
        self.has_segments = "token_type_ids" in names
        backend.enable_truncation(max_tokens)

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenLists:
        """Tokenise n texts; with `pairs`, as `[CLS] text [SEP] pair [SEP]` with segments.

        Raises TypeError for anything that is not a string, for example a pair instead of a text.
        """
        for column in (texts, pairs or ()):
            check_texts(column)
        ids, segments = [np.zeros(0, np.int32)], [np.zeros(0, np.int8)]
        lengths, truncated = list[int](), list[bool]()
        for begin in range(0, len(texts), CHUNK):
            rows = slice(begin, begin + CHUNK)
            chunk = self.encoded(texts[rows], None if pairs is None else pairs[rows])
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

    def encoded(
        self, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> Sequence[tokenizers.Encoding | PairTokens]:
        """Return the tokens of texts, or of pairs of texts, each in one sequence."""
        columns = [texts] if pairs is None else [texts, pairs]
        found = [
            self.backend.encode_batch_fast(
                [text.lower() for text in column] if self.lower else list(column),
                add_special_tokens=pairs is None,
            )
            for column in columns
        ]
        if pairs is None:
            return found[0]
        join, limit = self.pair_template.join, self.max_tokens
        return [join(first, second, limit) for first, second in zip(*found, strict=True)]

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`, which transformers opens."""
        self.backend.no_truncation()
        content = self.backend.to_str(pretty=True)
        self.backend.enable_truncation(self.max_tokens)
        atomic_write_text(folder / "tokenizer.json", content)
        settings = self.settings | {"model_max_length": self.max_tokens}
        atomic_write_text(folder / "tokenizer_config.json", json.dumps(settings, indent=2))


def truncation(cut: int, total: int, texts: str, max_tokens: int) -> str:
    """Return `12 of 8,544 train texts are longer than 256 tokens and were cut`."""
    longer, were = ("is", "was") if cut == 1 else ("are", "were")
    return f"{cut:,} of {total:,} {texts} {longer} longer than {max_tokens} tokens and {were} cut"


def warn_of_truncation(cut: int, total: int, texts: str, max_tokens: int) -> None:
    """Warn the caller's caller if any texts were cut."""
    if cut:
        warnings.warn(truncation(cut, total, texts, max_tokens), Notice, stacklevel=3)
