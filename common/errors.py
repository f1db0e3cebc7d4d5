"""Errors that users can fix, each with a message of one line, notices, and words of messages."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from unicodedata import category

UNSAFE = ("Cc", "Cs", "Cn", "Zl", "Zp")
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class UserError(ValueError):
    """Error printed as one line, which may quote a file; `status` is that of the command line."""

    status = 1

    def __init__(self, message: str = "") -> None:
        line = one_line(message)
        super().__init__(line if len(line) <= 1000 else f"{line[:700]} ... {line[-300:]}")


class SettingsError(UserError):
    """An invalid setting or combination of settings; the message starts with the setting."""

    status = 2


class RunError(UserError):
    """A run that cannot be trained or used as requested."""


class EncoderError(UserError):
    """An encoder that cannot be read."""


class Notice(UserWarning):
    """Warning that the command line prints as one line."""


def one_line(text: str) -> str:
    """Return the text in one line, with single spaces and unsafe characters escaped."""
    return escape_unsafe(" ".join(text.split()))


def escape_unsafe(text: str) -> str:
    """Escape characters that are unsafe for a terminal as Python does, for example `\\x1b`.

    They are control, surrogate, unassigned and direction characters, and no joiners.
    """
    return "".join(repr(c)[1:-1] if category(c) in UNSAFE or c in TURNS else c for c in text)


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
