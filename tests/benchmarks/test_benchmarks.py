"""Benchmarks run on the bundled sample, and find our results equal to the peers'."""

import sys
from contextlib import nullcontext

import pytest
import torch

from benchmarks import __main__, startup, timing, train_step
from benchmarks import sides as scripts
from benchmarks.timing import gemm_seconds, in_rounds, rate_table, seconds_table
from common.files import read_json


@pytest.fixture(autouse=True)
def small_products(monkeypatch):
    """The limit is of matrices that are multiplied in no time."""
    monkeypatch.setattr(timing, "GEMM_TOKENS", 64)


@pytest.fixture
def measured(tmp_path, monkeypatch, capsys):
    def run(name, *flags):
        file = tmp_path / "figures.json"
        argv = ["benchmarks", name, "--repetitions", "1", "--output", str(file), *flags]
        monkeypatch.setattr(sys, "argv", argv)
        __main__.main()
        found = read_json(file)
        assert found["benchmark"] == name
        output = capsys.readouterr().out
        for group, sides in found["groups"].items():
            assert group in output
            for side, figures in sides.items():
                assert side in output
                assert figures["median"] > 0
        return found["groups"]

    return run


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(train_step, "BATCH", 4)
    monkeypatch.setattr(train_step, "STEPS", 1)


def test_encode(measured):
    groups = measured("encode", "--texts", "10")
    assert len(groups) == 2
    for sides in groups.values():
        for precision, least in (("fp32", 0.99999), ("bf16", 0.9995)):
            for name in (f"ours {precision}", f"transformers {precision}, bucketed 64"):
                assert sides[name]["cosine_min"] >= least
                assert sides[name]["share_of_limit"] > 0
        assert sides["ONNX Runtime fp32, bucketed 64"]["cosine_min"] >= 0.99999


@pytest.mark.slow
def test_train_step(measured, small_steps):
    (found,) = measured("train-step").values()
    assert len(found) == 6
    assert found["ours fp32"]["gradient_difference"] <= 1e-5
    assert 1e-4 < found["ours bf16"]["gradient_difference"] <= 5e-2


@pytest.mark.slow
def test_our_startup_commands_and_the_peers_scripts_succeed(tmp_path, monkeypatch):
    """The peer's scripts run in this process, which imports its modules once for all tests."""

    def stop():
        raise SystemExit(0)

    monkeypatch.setattr(scripts, "end", stop)
    for name, commands in startup.commands(tmp_path).items():
        (_, _, _, script, *arguments), ours = commands.values()
        with pytest.raises(SystemExit) if "step" in name else nullcontext():
            getattr(scripts, script)(*arguments)
        assert (tmp_path / "sentence.npy").exists() == ("sentence" in name)
        assert startup.seconds_of(ours) > 0


def test_a_failing_command_raises_an_error():
    with pytest.raises(RuntimeError, match="no_such_script"):
        startup.seconds_of([sys.executable, "-m", "benchmarks.no_such_script"])


def test_sides_are_interleaved_and_the_first_round_warms_up():
    order: list[str] = []

    def side(name):
        return lambda: order.append(name) or float(len(order))

    found = in_rounds({name: side(name) for name in "abc"}, 9)
    rounds = ["".join(order[begin : begin + 3]) for begin in range(0, 30, 3)]
    assert all(sorted(several) == list("abc") for several in rounds)
    assert len(set(rounds)) > 2, "no side always follows the same one"
    for name in "abc":
        assert found[name] == [place + 1 for place, one in enumerate(order) if one == name][1:]


def test_ratios_are_speed_ups_over_the_peer():
    found = {"ours": [1.0, 2.0, 6.0], "peer": [4.0, 5.0, 6.0]}
    seconds = seconds_table(found, "peer")
    assert seconds["ours"] == {"min": 1.0, "median": 2.0, "max": 6.0, "ratio": 2.5}
    assert seconds["peer"]["ratio"] == 1.0
    rates = rate_table(found, 10.0, "peer")
    assert rates["ours"]["median"] == 5.0
    assert rates["ours"]["ratio"] == pytest.approx(2.5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_gemm_limit_is_proportional_to_the_tokens(precision, monkeypatch):
    timed = []
    monkeypatch.setattr(timing, "timed_on", lambda work, device: timed.append(work()) or 0.5)
    one, two = (gemm_seconds(tokens, precision, torch.device("cpu")) for tokens in (100, 10_000))
    assert two == pytest.approx(100 * one)
    assert one > 0
    assert timed
