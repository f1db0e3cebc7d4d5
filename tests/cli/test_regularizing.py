"""Flags of regularisers: weights by task, what contradicts what, and a run with all of them."""

import json

import pytest

from multitask.methods import methods

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny")
BALL = ("--smart-weight", "1", "--smart-variant", "projected")
ALL = ("--mode", "multitask", "--encoder", "tiny", "--limit", "16", "--epochs", "1")


@pytest.mark.parametrize("mode", ["single", "multitask", "pareto"])
def test_each_weight_has_a_flag(mode, run):
    shown = run("--mode", mode, "--help-all").stdout
    assert list(methods("regularizers")) == ["smart", "r-drop", "proximal"]
    for name in methods("regularizers"):
        assert (f"--{name}-weight W" in shown) == (mode != "pareto")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--smart-steps", "2"], "--smart-steps: expected a --smart-weight above 0, found 2"),
        (["--smart-weight", "0", "--smart-norm", "l2"], "--smart-norm: expected a --smart-weight"),
        (["--smart-weight", "qqp=1"], "--smart-weight: expected one of sst, found 'qqp'"),
        (["--smart-weight", "-1"], "--smart-weight: expected a number from 0"),
        (["--r-drop-weight", "sst=x"], "expected a number from 0 to 1000000, found 'x'"),
        (["--r-drop-weight", "inf"], "by task, found inf"),
        (["--smart-weight", "1", "3"], "expected one for all tasks, found several"),
        (["--smart-weight", "sst=1", "sst=0"], "expected one for sst, found several"),
        (["--smart-weight", "=2"], "by task, found '=2'"),
        (
            [*BALL, "--smart-radius", "1e-5", "--precision", "bf16"],
            "--smart-radius: expected 0.0039 or more with precision bf16",
        ),
        (
            ["--proximal-momentum", "0.9"],
            "--proximal-momentum: expected a --proximal-weight above 0",
        ),
        (["--r-drop-weight", "1", "--freeze-encoder"], "expected at most one"),
        (["--probe-epochs", "3"], "--probe-epochs: expected fewer than epochs 3, found 3"),
        (["--probe-epochs", "1", "--freeze-encoder"], "expected at most one"),
    ],
)
def test_what_would_do_nothing_is_refused(argv, expected, refused):
    assert expected in refused(2, *SST, *argv)


def test_weights_for_all_tasks_and_for_one(run, tmp_path):
    flags = ("--smart-weight", "sts=3", "0.5", "--r-drop-weight", "sst=1", "--output")
    found = run(*ALL, *flags, str(tmp_path / "run"))
    assert found.returncode == 0, found.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["smart_weight"] == {"sst": 0.5, "qqp": 0.5, "sts": 3.0}
    assert config["r_drop_weight"] == {"sst": 1.0}


def test_everything_at_once_with_surgery(run, tmp_path):
    flags = ("--pcgrad", "--smart-weight", "1", "--proximal-weight", "1", "--r-drop-weight", "1")
    noise = ("--smart-variant", "projected", "--smart-steps", "2", "--smart-norm", "l2")
    found = run(*ALL, *flags, *noise, "--micro-batch", "4", "--output", str(tmp_path / "run"))
    assert found.returncode == 0, found.stderr
    assert (tmp_path / "run" / "metrics.json").exists()


def test_probing_and_fine_tuning_each_have_their_own_learning_rates(run, tmp_path):
    flags = ("--epochs", "2", "--probe-epochs", "1", "--limit", "16", "--output")
    found = run(*SST, *flags, str(tmp_path / "run"))
    assert found.returncode == 0, found.stderr
    lines = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
    factors = [json.loads(line)["learning_rate_factor"] for line in lines]
    half = len(factors) // 2
    assert factors[:half] == factors[half:]  # each stage has its own rise and fall
