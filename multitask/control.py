"""How a run is executed: options that do not change its results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from common.errors import SettingsError


@dataclass(frozen=True)
class RunControl:
    """How a run is executed, which does not change its results.

    `checkpoint_every` is a number of steps; other checkpoints are written every ten minutes
    and after each evaluation.
    """

    resume: bool = False
    overwrite: bool = False
    checkpoint_every: int | None = None
    command: str | None = None  # command line, stored with the metrics
    callbacks: tuple[Any, ...] = ()  # see multitask/callbacks.py
    tensorboard: bool = True  # store curves

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise SettingsError("resume and overwrite: expected at most one of them")
