"""Names and counts in a sentence, and suggestions for names that do not exist."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


def first_names(names: Sequence[str], most: int = 5) -> str:
    """Return names in one line, only the first ones of many: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """Return `0 steps`, `1 step` or `1,000 steps`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def all_names(names: Sequence[str], last: str = "and") -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def suggestion(value: object, names: Iterable[str]) -> str:
    """Return the end of a message with the most similar name; empty if none is similar."""
    near = get_close_matches(str(value), [*names], 1, 0.7)
    return f"; did you mean {near[0]}?" if near else ""
