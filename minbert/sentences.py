"""Checks of the texts that a user passes to an encoder or a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def check_column(sentences: object, batch_size: int | None) -> None:
    """Raise an error for input that is not one column of texts, and for a wrong batch size."""
    if isinstance(sentences, str):
        raise TypeError("sentences: expected a list of strings, found one string")
    if (dimensions := getattr(sentences, "ndim", 1)) != 1:
        raise TypeError(f"sentences: expected one column, found {dimensions} dimensions")
    if batch_size is not None and batch_size < 1:
        raise ValueError(f"batch_size: expected a number from 1, found {batch_size}")


def check_texts(texts: Sequence[Any], before: int = 0) -> None:
    """Raise TypeError, with the index, for a text that the backend would reject or misinterpret.

    `before` counts the texts in front of these.
    """
    for index, text in enumerate(texts, before):
        if not isinstance(text, str):
            found = f"found {text!r:.40} at index {index}, counted from 0"
            raise TypeError(f"texts: expected strings, {found}")
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise TypeError(f"texts: expected Unicode text, found half a surrogate pair at {index}")
