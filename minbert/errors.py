"""Faults that a user can mend: each message is one line. No torch is imported here."""


class UserError(ValueError):
    """Told without a traceback; `status` is the exit status of the command line."""

    status = 1


class EncoderError(UserError):
    """An encoder cannot be found, read or understood."""


class UnknownEncoderError(EncoderError):
    """A name that is no named encoder, no local folder and no hub id."""

    status = 2
