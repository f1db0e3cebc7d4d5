"""Errors that users can fix, each with a message of one line, and notices."""

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
