"""What an encoder's folder or name that cannot be used raises."""


class EncoderError(ValueError):
    """An encoder cannot be found, read or understood; the message is one line for the user."""


class UnknownEncoderError(EncoderError):
    """A name that is no named encoder, no local folder and no hub id."""
