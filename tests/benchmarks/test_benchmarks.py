"""Benchmarks run on the bundled sample, and find our results equal to the peers'."""

import sys

import pytest
import torch

from benchmarks import __main__, startup, timing, training
from benchmarks.timing import figures
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
        assert found["settings"]["name"] == name
        assert found["environment"]["torch"] == torch.__version__
        output = capsys.readouterr().out
        for group, sides in found["groups"].items():
            assert group in output
            for side, row in sides.items():
                assert side in output
                assert row["median"] > 0
        return found["groups"]

    return run


def test_encode(measured):
    groups = measured("encode", "--texts", "10")
    assert len(groups) == 2
    for sides in groups.values():
        for precision, least in (("fp32", 0.99999), ("bf16", 0.9995)):
            for name in (f"ours {precision}", f"transformers {precision}, bucketed"):
                assert sides[name]["cosine min"] >= least
                assert sides[name]["of GEMM limit"] > 0
        assert sides["ONNX Runtime fp32, bucketed"]["cosine min"] >= 0.99999


@pytest.mark.slow
def test_train_step(measured, monkeypatch):
    monkeypatch.setattr(training, "BATCH", 4)
    monkeypatch.setattr(training, "STEPS", 1)
    (found,) = measured("train-step").values()
    assert len(found) == 6
    assert found["ours fp32"]["gradient off by"] <= 1e-5
    assert 1e-4 < found["ours bf16"]["gradient off by"] <= 5e-2


@pytest.mark.slow
def test_surgery(measured):
    (found,) = measured("surgery").values()
    assert len(found) == 3
    assert found["our PCGrad"]["gradient off by"] <= 1e-4


@pytest.mark.slow
def test_startup():
    for commands in startup.COMMANDS.values():
        for command in commands:
            assert startup.seconds_of(command) > 0


def test_ratios_are_speed_ups_over_the_peer():
    found = {"ours": [1.0, 2.0, 6.0], "peer": [4.0, 5.0, 6.0]}
    seconds = figures(found, "peer")
    assert seconds["ours"] == {"min": 1.0, "median": 2.0, "max": 6.0, "ratio": 2.5}
    assert seconds["peer"]["ratio"] == 1.0
    rates = figures(found, "peer", 10)
    assert rates["ours"]["median"] == 5.0
    assert rates["ours"]["ratio"] == 2.5
