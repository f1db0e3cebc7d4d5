"""Faults that a user can mend: each message is one line. No torch is imported here."""

from unicodedata import category

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
LONGEST = 1000  # characters of a message, beyond which its middle is left out


class UserError(ValueError):
    """Told without a traceback; `status` is the exit status of the command line.

    A message may quote what a file holds: it is brought into one line that does no harm to a
    terminal, control characters and halves of surrogate pairs written as Python does.
    """

    status = 1

    def __init__(self, message: str = "") -> None:
        line = one_line(message)
        if len(line) > LONGEST:
            line = f"{line[: LONGEST * 2 // 3]} ... {line[-LONGEST // 3 :]}"
        super().__init__(line)


def one_line(text: str) -> str:
    """Text for a line of a terminal: single spaces, and what would harm it escaped."""
    return harmless(" ".join(text.split()))


def harmless(text: str) -> str:
    """Text for a terminal: what would harm it is written as Python does, `\\x1b` of an escape."""
    if text.isprintable():
        return text
    return "".join(repr(c)[1:-1] if harmful(c) else c for c in text)


def harmful(letter: str) -> bool:
    """Control characters, halves of pairs, what has no meaning, and what turns the direction."""
    return category(letter) in ("Cc", "Cs", "Cn") or letter in TURNS


class SettingsError(UserError):
    """A setting, or several together, that cannot be used."""

    status = 2


class EncoderError(UserError):
    """An encoder cannot be found, read or understood."""


class UnknownEncoderError(EncoderError):
    """A name that is no named encoder, no local folder and no hub id."""

    status = 2


class TruncationWarning(UserWarning):
    """Texts are longer than the encoder's limit, and were cut to it."""


def out_of_memory(error: BaseException) -> bool:
    """MemoryError of Python and NumPy, and what PyTorch raises on a GPU and on a CPU."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in OUT_OF_MEMORY)
