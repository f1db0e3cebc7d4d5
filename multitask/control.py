"""How a run is executed: options that do not change its results, and signals."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from common.errors import SettingsError

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

    `resume` with `overwrite` is a SettingsError.

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
    callbacks: tuple[Any, ...] = ()  # see multitask/callbacks.py
    tensorboard: bool = True  # store curves

    def __post_init__(self) -> None:
        if self.resume and self.overwrite:
            raise SettingsError("resume and overwrite: expected at most one of them")


def parse_every(text: str) -> Every:
    """Parse `200` (steps), `90s`, `10m` or `2h`; raise ValueError for anything else."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})([smh]?)", text)
    if found is None:
        raise ValueError("expected a number of steps such as 200, or a time such as 90s, 10m, 2h")
    number, unit = int(found[1]), found[2]
    return Every(seconds=number * UNITS[unit]) if unit else Every(steps=number)


SIGNALS = (signal.SIGINT, signal.SIGTERM)
ECHO = 1.0  # seconds; torchrun repeats a signal that a terminal has already sent to every process


class Interrupts:
    """SIGINT and SIGTERM of one run: the first one is delayed, a second one ends the process."""

    def __init__(self, processes: int = 1) -> None:
        self.first_signal: float | None = None  # time of the first signal
        self.echo = ECHO if processes > 1 else 0.0

    @property
    def stop_requested(self) -> bool:
        """Whether a signal to stop has arrived."""
        return self.first_signal is not None

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Delay signals until the end of this context; the caller then checks `stop_requested`."""
        if threading.current_thread() is not threading.main_thread():  # signals arrive only there
            yield
            return
        # An ignored signal stays ignored (background jobs); None cannot be restored.
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        before = {n: h for n, h in handlers.items() if h not in (signal.SIG_IGN, None)}
        for number in before:
            signal.signal(number, self.on_signal)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.first_signal is None:
            self.first_signal = now
        elif now - self.first_signal >= self.echo:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
