"""What goes wrong in a run through no fault of the program."""

from __future__ import annotations

from common.errors import UserError


class RunError(UserError):
    """A run that cannot be made or used as asked."""


class NotFiniteError(RunError):
    """A loss or a gradient that is infinite or no number."""
