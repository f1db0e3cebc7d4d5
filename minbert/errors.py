"""The one exception that an encoder folder or name which cannot be used raises."""


class EncoderError(ValueError):
    """An encoder cannot be found, read or understood; the message is one line for the user."""
