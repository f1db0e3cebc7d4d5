"""Flags of regularisers: weights by task, what contradicts what, and a run with all of them."""

import json

import pytest

from multitask.methods import methods

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny")
ALL = ("--mode", "multitask", "--encoder", "tiny", "--limit", "16", "--epochs", "1")


@pytest.mark.parametrize("mode", ["single", "multitask", "pareto"])
def test_each_weight_has_a_flag(mode, run):
    shown = run("--mode", mode, "--help-all").stdout
    assert list(methods("regularizers")) == ["smart", "r-drop", "proximal"]
    for name in methods("regularizers"):
        assert (f"--{name}-weight W" in shown) == (mode != "pareto")


def test_weights_for_all_tasks_and_for_one_in_a_run_with_every_regulariser_and_surgery(
    ran, tmp_path
):
    flags = ("--smart-weight", "sts=3", "0.5", "--r-drop-weight", "sst=1", "--proximal-weight", "1")
    noise = ("--smart-variant", "projected", "--smart-steps", "2", "--smart-norm", "l2")
    command = (*ALL, *flags, *noise, "--pcgrad", "--micro-batch", "4")
    ran(*command, "--output", tmp_path / "run")
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["smart_weight"] == {"sst": 0.5, "qqp": 0.5, "sts": 3.0}
    assert config["r_drop_weight"] == {"sst": 1.0}
    assert config["proximal_weight"] == {"sst": 1.0, "qqp": 1.0, "sts": 1.0}


def test_probing_and_fine_tuning_each_have_their_own_learning_rates(ran, tmp_path):
    flags = ("--epochs", "2", "--probe-epochs", "1", "--limit", "16", "--output")
    ran(*SST, *flags, str(tmp_path / "run"))
    lines = (tmp_path / "run" / "telemetry.jsonl").read_text().splitlines()
    factors = [json.loads(line)["learning_rate_factor"] for line in lines]
    half = len(factors) // 2
    assert factors[:half] == factors[half:]  # each stage has its own rise and fall
