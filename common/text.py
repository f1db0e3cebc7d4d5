"""Names in a sentence, and suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any


def first_names(names: Sequence[str], most: int = 5) -> str:
    """Return names in one line, only the first ones of many: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def all_names(names: Sequence[str], last: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def any_of(names: Sequence[str]) -> str:
    """Return `a`, `a or b`, or `a, b or c`."""
    return all_names(names, "or")


CUTOFF = 0.7  # minimum similarity (difflib's ratio) of a name suggested for a misspelt one


def suggestion(value: Any, names: Iterable[str], cutoff: float = CUTOFF) -> str:
    """Return the end of a message with the most similar name; empty if none is similar.

    Letter case, and hyphens in place of underscores, do not count.
    """
    if not isinstance(value, str):
        return ""
    known = {normal(name): name for name in names}
    near = get_close_matches(normal(value), known, 1, cutoff)
    return f"; did you mean {known[near[0]]}?" if near else ""


def normal(name: str) -> str:
    """Return a name in lower case, with underscores in place of hyphens."""
    return name.replace("-", "_").lower()
