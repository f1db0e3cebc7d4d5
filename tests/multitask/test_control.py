"""Options of a run that do not change its results: intervals of checkpoints, and signals."""

from __future__ import annotations

import os
import signal
import time

import pytest

from multitask.control import ECHO, Every, Interrupts, parse_every


@pytest.fixture
def clock(monkeypatch):
    """`clock[0]` is the time: it passes only where a test lets it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("text", "expected"),
    [("200", Every(200)), ("90s", Every(None, 90)), ("10m", Every(None, 600))]
    + [(text, None) for text in ("", "0", "-1", "1d", "1.5h", "1" * 20)],
)
def test_an_interval_is_a_number_of_steps_or_a_time(clock, text, expected):
    if expected is None:
        with pytest.raises(ValueError, match="expected a number of steps such as 200, or a time"):
            parse_every(text)
    else:
        assert parse_every(text) == expected
        last = 100 - (expected.seconds or 0)
        assert expected.due(expected.steps or 1, since=last)
        assert not expected.due((expected.steps or 10**6) - 1, since=last + 0.5)


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
def test_a_second_signal_ends_the_process_at_once(monkeypatch, clock, processes):
    """But for the one that torchrun sends on to each of its processes."""
    killed = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(number))
    one, before = Interrupts(processes), signal.getsignal(signal.SIGTERM)
    with one.deferred():
        signal.raise_signal(signal.SIGTERM)
        if processes == 2:
            signal.raise_signal(signal.SIGTERM)
            clock[0] += ECHO
        assert not killed
        signal.raise_signal(signal.SIGTERM)
        assert killed == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) == before
