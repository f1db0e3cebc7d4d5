"""Empty texts, by one rule for all modes: they keep their row, have no result, and are counted.

The missing result is an empty field in a table, NaN in an array and null in JSON. Readers turn a
missing text, such as null in a JSON file, into an empty one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from common.errors import EmptyTextWarning

if TYPE_CHECKING:
    from minbert.bi_encoder import BiEncoder

REASON = "empty text"


def is_empty(text: str) -> bool:
    """Return whether a text has no character but white space."""
    return not text.strip()


def warn_of_empty_texts(empty: int, total: int, result: str = "no prediction from it") -> None:
    """Warn the caller's caller if rows have an empty text; `result` is what they have instead."""
    if empty:
        line = f"{empty:,} of {total:,} rows have an empty text, and {result}"
        warnings.warn(line, EmptyTextWarning, stacklevel=3)


def encode_stream(
    model: BiEncoder,
    sentences: Iterable[str],
    precision: str = "fp32",
    normalize: bool | None = None,
    total: int | None = None,
) -> Iterator[np.ndarray]:
    """Yield embeddings (n, H) as `BiEncoder.encode_stream` does, but NaN for empty texts.

    Warn with an EmptyTextWarning after the last window.
    """
    marks: list[bool] = []  # of the texts of a window, which are read before it is encoded

    def marked() -> Iterator[str]:
        for sentence in sentences:
            marks.append(is_empty(sentence))
            yield sentence

    done, empty = 0, 0
    for window in model.encode_stream(marked(), precision, normalize, total):
        window[np.array(marks)] = np.nan
        done, empty = done + len(window), empty + sum(marks)
        marks.clear()
        yield window
    warn_of_empty_texts(empty, done, "NaN in place of an embedding")
