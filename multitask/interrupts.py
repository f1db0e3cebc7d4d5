"""Delayed handling of signals until the end of a step or of a write."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ECHO = 1.0  # seconds; torchrun repeats a signal that a terminal has already sent to every process


class Interrupts:
    """SIGINT and SIGTERM of one run: the first one is delayed, a second one ends the process."""

    def __init__(self, processes: int = 1) -> None:
        self.first: float | None = None  # time of the first signal
        self.echo = ECHO if processes > 1 else 0.0

    @property
    def asked(self) -> bool:
        """Whether a signal to stop has arrived."""
        return self.first is not None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Delay signals until the end of this context; the caller then checks `asked`."""
        if threading.current_thread() is not threading.main_thread():  # signals arrive only there
            yield
            return
        # An ignored signal stays ignored (background jobs); None cannot be restored.
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        before = {n: h for n, h in handlers.items() if h not in (signal.SIG_IGN, None)}
        for number in before:
            signal.signal(number, self.note)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = now
        elif now - self.first >= self.echo:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
