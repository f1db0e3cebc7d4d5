"""Suggestions for names that do not exist."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

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
