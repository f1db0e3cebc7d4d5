"""How a run is conducted. Nothing here changes what it computes. No torch is imported here."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

UNITS = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Every:
    """How often: so many steps, or so many seconds, from one time to the next."""

    steps: int | None = None
    seconds: float | None = None

    def due(self, steps: int, since: float) -> bool:
        """Whether it is time, `steps` after the last time, which was at `since` (monotonic)."""
        if self.steps is not None:
            return steps >= self.steps
        return self.seconds is not None and time.monotonic() - since >= self.seconds


@dataclass(frozen=True)
class RunControl:
    """What is done with the run that a folder holds, and when its state is kept.

    `skip_limit` steps in a row whose loss or gradient is not finite end the run. Epochs that take
    seconds are better lost than kept: without `every_epoch` there are checkpoints by
    `checkpoint_every` and on signals alone.
    """

    resume: bool = False
    overwrite: bool = False
    verbose: bool = False
    checkpoint_every: Every = Every(seconds=600)
    every_epoch: bool = True  # a checkpoint at its end, too
    skip_limit: int = 10
    command: str | None = None  # as it was typed, for whoever reads the metrics


def parse_every(text: str) -> Every:
    """`200` steps, `90s`, `10m`, `2h`; ValueError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smh]?)", text)
    if found is None:
        raise ValueError("expected a number of steps such as 200, or a time such as 90s, 10m, 2h")
    number, unit = int(found[1]), found[2]
    return Every(seconds=number * UNITS[unit]) if unit else Every(steps=number)
