"""Turns, medians and ratios."""

import pytest
import torch

from benchmarks import timing
from benchmarks.timing import gemm_seconds, in_rounds, rate_table, seconds_table


def test_sides_take_turns_and_the_first_round_warms_up():
    order: list[str] = []

    def side(name):
        def run():
            order.append(name)
            return float(len(order))

        return run

    found = in_rounds({name: side(name) for name in "abc"}, 9)
    rounds = ["".join(order[begin : begin + 3]) for begin in range(0, 30, 3)]
    assert all(sorted(several) == list("abc") for several in rounds)
    assert len(set(rounds)) > 2, "no side always follows the same one"
    for name in "abc":
        assert found[name] == [place + 1 for place, one in enumerate(order) if one == name][1:]


def test_ratios_are_times_faster_than_the_peer():
    found = {"ours": [1.0, 2.0, 6.0], "peer": [4.0, 5.0, 6.0]}
    seconds = seconds_table(found, "peer")
    assert seconds["ours"] == {"min": 1.0, "median": 2.0, "max": 6.0, "ratio": 2.5}
    assert seconds["peer"]["ratio"] == 1.0
    rates = rate_table(found, 10.0, "peer")
    assert rates["ours"]["median"] == 5.0
    assert rates["ours"]["ratio"] == pytest.approx(2.5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_limit_grows_with_the_tokens(precision, monkeypatch):
    timed = []
    monkeypatch.setattr(timing, "timed_on", lambda work, device: timed.append(work()) or 0.5)
    one, two = (gemm_seconds(tokens, 6, precision, torch.device("cpu")) for tokens in (100, 10_000))
    assert two == pytest.approx(100 * one)
    assert one > 0
    assert timed
