"""How a run is executed: options that do not change its results, and signals."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from common.errors import SettingsError


@dataclass(frozen=True)
class RunControl:
    """How a run is executed, which does not change its results.

    `checkpoint_every` is a number of steps; other checkpoints are written every ten minutes, after
    each evaluation and on signals.
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
