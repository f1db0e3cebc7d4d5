"""Signals to a run: the first one is delayed, a second one ends the process."""

from __future__ import annotations

import os
import signal
import time

import pytest

from multitask.control import ECHO, Interrupts


def test_a_signal_is_deferred_to_the_end_of_the_context():
    one, done = Interrupts(), []
    with one.deferred():
        with one.deferred():
            signal.raise_signal(signal.SIGINT)
        done.append(True)
    assert done
    assert one.stop_requested
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_second_signal_ends_the_process_at_once(monkeypatch, processes):
    """But for the one that torchrun sends on to each of its processes."""
    killed, now = [], [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(number))
    one, before = Interrupts(processes), signal.getsignal(signal.SIGTERM)
    with one.deferred():
        signal.raise_signal(signal.SIGTERM)
        if processes == 2:
            signal.raise_signal(signal.SIGTERM)
            now[0] += ECHO
        assert not killed
        signal.raise_signal(signal.SIGTERM)
        assert killed == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == before
