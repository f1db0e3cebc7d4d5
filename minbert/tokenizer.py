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

from common.atomic_files import atomic_write_text
from common.errors import EncoderError, TruncationWarning
from minbert.batching import Chunks, TokenLists, offsets_of
from minbert.growing_array import GrowingArray
from minbert.joined_pairs import PairTemplate, PairTokens
from minbert.long_texts import AMPLE, MOST_CHUNKS, READERS, beginning, ending
from minbert.sentences import check_texts, portions

CHUNK = 2048  # texts tokenised at once; limits the memory of the library's result objects
LONG_PAIR = 4  # pairs of more than so many characters per token of the limit use `joined`


class Tokenizer:
    """Tokenizer that adds special tokens, truncates to `max_tokens` and never pads.

    `long` says what is read of a longer text: its `head`, its head and tail (`head-tail`), or all
    of it, in `chunks` of at most `max_tokens`; see `minbert/long_texts.py`. Truncation and padding
    settings of a `tokenizer.json` are ignored: all-MiniLM's file would pad every sentence to 128
    tokens.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        max_tokens: int,
        lower: bool = False,
        settings: dict[str, Any] | None = None,
        long: str = "head",
    ) -> None:
        if long != "head" and long not in READERS:
            raise EncoderError(f"long: expected one of head, {', '.join(READERS)}, found {long!r}")
        backend.no_padding()
        backend.no_truncation()
        self.begin, self.end = special_tokens(backend)
        self.pair_template = PairTemplate.of(backend)
        self.backend, self.max_tokens, self.lower = backend, max_tokens, lower
        self.settings, self.long = settings or {}, long
        names = self.settings.get("model_input_names") or ("token_type_ids",)
        self.has_segments = "token_type_ids" in names
        self.limit()

    def limit(self) -> None:
        """Let the library truncate if the head of long texts is read."""
        if self.long == "head":
            self.backend.enable_truncation(self.max_tokens)

    @property
    def vocab_size(self) -> int:
        return self.backend.get_vocab_size()

    @property
    def room(self) -> int:
        """Tokens that fit beside the special ones."""
        return max(1, self.max_tokens - len(self.begin) - len(self.end))

    @property
    def longest(self) -> int:
        """Tokens of the longest text that is read completely, special tokens counted once."""
        parts = MOST_CHUNKS if self.long == "chunks" else 1
        return self.max_tokens + (parts - 1) * self.room

    def __call__(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> TokenLists:
        """Tokenise n texts; with `pairs`, as `[CLS] text [SEP] pair [SEP]` with segments.

        Raises TypeError for anything that is not a string, for example a pair instead of a text.
        """
        for column in (texts, pairs or ()):
            check_texts(column)
        if pairs is not None and len(pairs) != len(texts):
            raise ValueError(f"pairs: expected {len(texts)} of them, found {len(pairs)}")
        if self.long != "head":
            if pairs is not None:
                raise EncoderError(
                    f"long: expected head for pairs in one sequence, found {self.long}"
                )
            return self.parts(texts)
        dtypes = np.int32, np.int8, np.int64, np.bool_
        ids, segments, lengths, truncated = map(GrowingArray, dtypes)
        for some in portions(CHUNK, texts, pairs):
            inputs = self.cased(texts[some])
            if pairs is None:
                chunk = self.heads(inputs)
            else:
                chunk = self.pairs(inputs, self.cased(pairs[some]))
            ids.append(np.concatenate([np.array(one.ids, np.int32) for one in chunk]))
            lengths.append(np.array([len(one.ids) for one in chunk], np.int64))
            truncated.append(np.array([bool(one.overflowing) for one in chunk]))
            if pairs is not None:
                types = np.concatenate([np.array(one.type_ids, np.int8) for one in chunk])
                segments.append(types if self.has_segments else np.zeros_like(types))
        return TokenLists(
            ids=ids.array(),
            offsets=offsets_of(lengths.array()),
            truncated=truncated.array(),
            segments=None if pairs is None or not len(texts) else segments.array(),
        )

    def parts(self, texts: Sequence[str]) -> TokenLists:
        """Tokenise n texts, of which the long ones are shortened or have several chunks."""
        ids, truncated = GrowingArray(np.int32), np.zeros(len(texts), np.bool_)
        lengths, counts = GrowingArray(np.int64), np.ones(len(texts), np.int64)
        read, number, most = READERS[self.long], 0, AMPLE * self.longest
        for some in portions(CHUNK, texts):
            inputs = self.cased(texts[some])
            begins = [beginning(text, most) for text in inputs]
            for text, begin, tokens in zip(inputs, begins, self.plain(begins), strict=True):
                tokens = tokens if len(begin) == len(text) else self.ample(text, tokens)
                several, truncated[number] = read(tokens, self.room)
                counts[number], number = len(several), number + 1
                for part in several:
                    ids.append(np.concatenate([self.begin, part, self.end]))
                    lengths.append(np.array([self.begin.size + part.size + self.end.size]))
        chunks = Chunks(lengths.array(), offsets_of(counts))
        offsets = offsets_of(chunks.lengths)[chunks.offsets]
        whole = len(chunks.lengths) == len(texts)
        return TokenLists(ids.array(), offsets, truncated, chunks=None if whole else chunks)

    def heads(self, texts: Sequence[str]) -> list[Any]:
        """Encode cased texts; of a very long one only the beginning, if it fills the limit."""
        most = AMPLE * self.longest
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

    def plain(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the tokens of cased texts without special tokens."""
        found = self.backend.encode_batch_fast(texts, add_special_tokens=False)
        return [np.array(one.ids, np.int32) for one in found]

    def ample(self, text: str, first: np.ndarray) -> np.ndarray:
        """Return those tokens of a very long text that may be read; it begins with `first`."""
        if len(first) > self.longest and self.long == "chunks":
            return first
        if len(first) > self.longest:
            (last,) = self.plain([ending(text, AMPLE * self.longest)])
            if len(last) > self.longest:
                return np.concatenate([first, last])
        return self.plain([text])[0]

    def cased(self, texts: Sequence[str]) -> list[str]:
        return [text.lower() for text in texts] if self.lower else list(texts)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`, which transformers opens."""
        self.backend.no_truncation()
        content = self.backend.to_str(pretty=True)
        self.limit()
        atomic_write_text(folder / "tokenizer.json", content)
        settings = self.settings | {"model_max_length": self.max_tokens}
        atomic_write_text(folder / "tokenizer_config.json", json.dumps(settings, indent=2))


def special_tokens(backend: tokenizers.Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids of the special tokens before and after a text."""
    plain, complete = (backend.encode("a", add_special_tokens=one).ids for one in (False, True))
    places = range(len(complete) - len(plain) + 1)
    begin = next((i for i in places if complete[i : i + len(plain)] == plain), 0)
    parts = complete[:begin], complete[begin + len(plain) :]
    return np.array(parts[0], np.int32), np.array(parts[1], np.int32)


def truncation(cut: int, total: int, texts: str, max_tokens: int) -> str:
    """Return `12 of 8,544 train texts are longer than 256 tokens and were cut`."""
    longer, were = ("is", "was") if cut == 1 else ("are", "were")
    return f"{cut:,} of {total:,} {texts} {longer} longer than {max_tokens} tokens and {were} cut"


def warn_of_truncation(cut: int, total: int, texts: str, max_tokens: int) -> None:
    """Warn the caller's caller if any texts were cut."""
    if cut:
        warnings.warn(truncation(cut, total, texts, max_tokens), TruncationWarning, stacklevel=3)
