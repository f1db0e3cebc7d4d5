"""Objects that are no sequences of rows, although Python can iterate over them."""

from __future__ import annotations

from collections.abc import Mapping


def no_sequence(value: object, advice: str) -> str | None:
    """Return what a data frame, with advice, a mapping or a set is; None for other values.

    Of the first two, only the keys would be read; the order of a set is arbitrary.
    """
    if hasattr(value, "columns"):  # of pandas
        return f"a {type(value).__name__}: use {advice}"
    if isinstance(value, Mapping | set | frozenset):
        return f"a {type(value).__name__}"
    return None
