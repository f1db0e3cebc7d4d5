"""Checks of the texts that a user passes to an encoder or a tokenizer, and windows of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

HELD = 1 << 26  # characters of the texts that are held at once
Item = TypeVar("Item")


def check_column(sentences: object) -> None:
    """Raise TypeError for input that is not one column of texts in an order."""
    if isinstance(sentences, str | Mapping | Set) or getattr(sentences, "ndim", 1) != 1:
        found = type(sentences).__name__
        raise TypeError(f"sentences: expected a list of strings, found one {found}")


def check_texts(texts: Sequence[Any], before: int = 0) -> None:
    """Raise TypeError, with the index, for a text that the backend would reject or misinterpret.

    `before` counts the texts in front of these.
    """
    for index, text in enumerate(texts, before):
        if not isinstance(text, str):
            found = f"found {text!r:.40} at index {index}, counted from 0"
            raise TypeError(f"texts: expected strings, {found}")
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError as error:
                line = f"expected Unicode text, found half a surrogate pair at {index}"
                raise TypeError(f"texts: {line}") from error


def characters(row: Sequence[object]) -> int:
    """Return the characters of the texts of a row; other values are refused later."""
    return sum(len(text) for text in row if isinstance(text, str))


def windows(items: Iterable[Item], most: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield lists of at most `most` items; an item with which they reach HELD is the last.

    `size` gives the characters of an item. No item is read before it is needed.
    """
    window: list[Item] = []
    total = 0
    for item in items:
        window.append(item)
        total += size(item)
        if len(window) == most or total >= HELD:
            yield window
            window, total = [], 0
    if window:
        yield window
