"""Errors that users can fix, with one-line messages. This module does not import torch."""

from unicodedata import category

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LONGEST = 1000  # characters of a message; the middle of a longer one is left out


class UserError(ValueError):
    """Error printed without a traceback; `status` is the exit status of the command line.

    A message may quote a file's content. It is therefore reduced to one line that is safe for a
    terminal: control characters and lone surrogates are escaped as in Python.
    """

    status = 1
    printed_elsewhere = False  # by another process of the same run

    def __init__(self, message: str = "") -> None:
        line = one_line(message)
        if len(line) > LONGEST:
            line = f"{line[: LONGEST * 2 // 3]} ... {line[-LONGEST // 3 :]}"
        super().__init__(line)


def one_line(text: str) -> str:
    """Return the text in one line, with single spaces and unsafe characters escaped."""
    return escape_unsafe(" ".join(text.split()))


def escape_unsafe(text: str) -> str:
    """Escape characters that are unsafe for a terminal as Python does, for example `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if is_unsafe(c) else c for c in text)


def is_unsafe(letter: str) -> bool:
    """Return whether a character is a control, surrogate, unassigned or direction character.

    Line and paragraph separators count as controls; joiners, as in emoji and Persian, do not.
    """
    return category(letter) in ("Cc", "Cs", "Cn", "Zl", "Zp") or letter in TURNS


class SettingsError(UserError):
    """An invalid setting or combination of settings."""

    status = 2


class RunError(UserError):
    """A run that cannot be trained or used as requested."""


class OtherRunError(RunError):
    """A folder that holds another run, or one of other files."""


class NotFiniteError(RunError):
    """A loss or a gradient that is infinite or NaN."""


class EncoderError(UserError):
    """An encoder that cannot be found or read."""


class UnknownEncoderError(EncoderError):
    """A name that is neither a named encoder nor a local folder nor a hub id."""

    status = 2


class Notice(UserWarning):
    """Warning that the command line prints as one line."""


class SharedEncoderWarning(Notice):
    """Warning that a run has branches, and that embeddings are those of its shared encoder."""


class UnfinishedRunWarning(Notice):
    """Warning that the weights are those of a run whose training has not finished."""


class TruncationWarning(Notice):
    """Warning that texts were longer than the encoder's limit and were cut to it."""


class EmptyTextWarning(Notice):
    """Warning that rows with an empty text have no prediction or embedding."""


class LeftOutWarning(Notice):
    """Warning that fields of rows are not in the output."""


def out_of_memory(error: BaseException) -> bool:
    """Return whether Python, NumPy or PyTorch (on a GPU or a CPU) ran out of memory."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in OUT_OF_MEMORY)
