"""Signals that wait for the end of a step or of a write."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ECHO = 1.0  # seconds: torchrun sends on what a terminal has sent to every process already


class Interrupts:
    """SIGINT and SIGTERM of one run: the first waits for a good moment, a second ends at once."""

    def __init__(self, processes: int = 1) -> None:
        self.first: float | None = None  # when the first one came
        self.echo = ECHO if processes > 1 else 0.0

    @property
    def asked(self) -> bool:
        """Whether the run was asked to stop."""
        return self.first is not None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Work that is done to its end. It does not stop the run by itself: see `asked`."""
        if threading.current_thread() is not threading.main_thread():  # signals never come here
            yield
            return
        # One that is ignored, as of a job in the background, stays so; None cannot be put back.
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
