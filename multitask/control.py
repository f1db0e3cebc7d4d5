"""Options that do not change the results of a run. No torch is imported here."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Every:
    """An interval of a number of steps, or of seconds."""

    steps: int | None = None
    seconds: float | None = None

    def due(self, steps: int, since: float) -> bool:
        """Return whether the interval is over, `steps` after the time `since` (monotonic)."""
        if self.steps is not None:
            return steps >= self.steps
        return self.seconds is not None and time.monotonic() - since >= self.seconds


@dataclass(frozen=True)
class RunControl:
    """The treatment of an existing run, and the frequency of checkpoints.

    The run ends after `skip_limit` skipped steps in a row, whose loss or gradient is not finite.
    With `every_epoch` False, checkpoints are written only by `checkpoint_every` and on signals,
    which suits epochs of a few seconds.
    """

    resume: bool = False
    overwrite: bool = False
    verbose: bool = False
    checkpoint_every: Every = Every(seconds=600)
    every_epoch: bool = True  # also write a checkpoint after every epoch
    skip_limit: int = 10
    command: str | None = None  # command line, stored with the metrics


def parse_every(text: str) -> Every:
    """Parse `200` (steps), `90s`, `10m` or `2h`; raise ValueError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smh]?)", text)
    if found is None:
        raise ValueError("expected a number of steps such as 200, or a time such as 90s, 10m, 2h")
    number, unit = int(found[1]), found[2]
    return Every(seconds=number * UNITS[unit]) if unit else Every(steps=number)
