"""Names in a sentence."""

from collections.abc import Sequence


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
