"""Empty texts, by one rule for all modes: they keep their row, have no result, and are counted.

The missing result is an empty field in a table, NaN in an array and null in JSON. Readers turn a
missing text, such as null in a JSON file, into an empty one.
"""

from __future__ import annotations

import warnings

from common.errors import Notice

REASON = "empty text"


def is_empty(text: str) -> bool:
    """Return whether a text has no character but white space."""
    return not text.strip()


def warn_of_empty_texts(empty: int, total: int, result: str = "no prediction from it") -> None:
    """Warn the caller's caller if rows have an empty text; `result` is what they have instead."""
    if empty:
        line = f"{empty:,} of {total:,} rows have an empty text, and {result}"
        warnings.warn(line, Notice, stacklevel=3)
