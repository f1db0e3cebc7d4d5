"""The start-up benchmark measures what it says."""

import pytest

from benchmarks import startup


def test_medians_and_ratios(monkeypatch):
    times = iter([9.0, 9.0, 1.0, 4.0, 2.0, 5.0, 6.0, 6.0])  # the first of each side is warming up
    monkeypatch.setattr(startup, "seconds_to_first_step", lambda module: next(times))
    sides = startup.measure(3)["sides"]
    assert sides[startup.OURS] == {"min": 1.0, "median": 2.0, "max": 6.0, "ratio": 2.0 / 5.0}
    assert sides[startup.PEER]["ratio"] == 1.0


def test_a_script_that_fails_is_told(monkeypatch):
    with pytest.raises(RuntimeError, match="did not get to its first step"):
        startup.seconds_to_first_step("no_such_script")


@pytest.mark.slow
def test_both_scripts_get_to_their_first_step():
    assert startup.seconds_to_first_step("startup_ours") > 0
    assert startup.seconds_to_first_step("startup_sentence_transformers") > 0
