"""Checks of the texts that a user passes to an encoder or a tokenizer, and portions of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeVar

# Characters of the texts that are tokenised at once, and of those that are held at once.
AT_ONCE, HELD = 1 << 23, 1 << 26
Item = TypeVar("Item")


def check_column(sentences: object, batch_size: int | None) -> None:
    """Raise an error for input that is not one column of texts, and for a wrong batch size."""
    if isinstance(sentences, str):
        raise TypeError("sentences: expected a list of strings, found one string")
    if isinstance(sentences, Mapping | set | frozenset):
        raise TypeError(f"sentences: expected a list, found a {type(sentences).__name__}")
    if (dimensions := getattr(sentences, "ndim", 1)) != 1:
        raise TypeError(f"sentences: expected one column, found {dimensions} dimensions")
    if batch_size is not None and not (isinstance(batch_size, Integral) and batch_size >= 1):
        raise ValueError(f"batch_size: expected a whole number from 1, found {batch_size!r:.40}")


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


def size_of(text: object) -> int:
    """Return the characters of a text; 0 for anything else, which is refused later."""
    return len(text) if isinstance(text, str) else 0


def characters(row: Sequence[object]) -> int:
    """Return the characters of the texts of a row."""
    return sum(map(size_of, row))


def windows(
    items: Iterable[Item], most: int, size: Callable[[Item], int], largest: int | None = None
) -> Iterator[list[Item]]:
    """Yield lists of at most `most` items; an item with which they reach `largest` is the last.

    `size` gives the characters of an item. No item is read before it is needed.
    """
    largest = HELD if largest is None else largest
    window: list[Item] = []
    total = 0
    for item in items:
        window.append(item)
        total += size(item)
        if len(window) == most or total >= largest:
            yield window
            del window  # before the next one is read
            window, total = [], 0
    if window:
        yield window


def portions(most: int, *columns: Sequence[str] | None) -> Iterator[slice]:
    """Yield slices of at most `most` rows of the columns with at most about AT_ONCE characters."""
    begin = 0
    rows = zip(*(column for column in columns if column is not None), strict=True)
    for window in windows(rows, most, characters, AT_ONCE):
        yield slice(begin, begin + len(window))
        begin += len(window)
