"""Errors of a run that its user can correct."""

from __future__ import annotations

from common.errors import UserError


class RunError(UserError):
    """A run that cannot be trained or used as requested."""


class NotFiniteError(RunError):
    """A loss or a gradient that is infinite or NaN."""
