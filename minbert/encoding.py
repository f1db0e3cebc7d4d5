"""Encoding of many sentences: windows, batch sizes, bfloat16, truncation warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice

import torch

from common.errors import EncoderError, TruncationWarning
from minbert.encoder import Encoder
from minbert.folder import AnyEncoder

WINDOW = 8192  # sentences held in memory and sorted together


def windows(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the texts in lists of at most `WINDOW`."""
    iterator = iter(texts)
    while window := list(islice(iterator, WINDOW)):
        yield window


def batch_tokens(device: torch.device) -> int:
    """Return the cells per batch: few on a CPU, to fit its caches; many on a GPU, to fill it."""
    return 2048 if device.type == "cpu" else 65536


def in_bfloat16(encoder: AnyEncoder) -> Encoder:
    """Copy the encoder with all weights in bfloat16; raise EncoderError for a BiLSTM."""
    if not isinstance(encoder, Encoder):
        raise EncoderError("bf16: expected a transformer, found a BiLSTM; use fp32 for it")
    state = {name: value.detach().bfloat16() for name, value in encoder.state_dict().items()}
    with torch.device("meta"):
        half = Encoder(encoder.config)
    half.load_state_dict(state, assign=True)
    if encoder.compiled:
        half.compile_layers(encoder.compiled)
    return half.eval()


def truncation(cut: int, total: int, texts: str, max_tokens: int) -> str:
    """Return `12 of 8,544 train texts are longer than 256 tokens and were cut`."""
    longer, were = ("is", "was") if cut == 1 else ("are", "were")
    return f"{cut:,} of {total:,} {texts} {longer} longer than {max_tokens} tokens and {were} cut"


def warn_of_truncation(cut: int, total: int, texts: str, max_tokens: int) -> None:
    """Warn the caller's caller if any texts were cut."""
    if cut:
        warnings.warn(truncation(cut, total, texts, max_tokens), TruncationWarning, stacklevel=3)
