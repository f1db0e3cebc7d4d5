"""Runs that are interrupted and resumed, and runs that start from another."""

import signal
from typing import Any

import pytest
from run_files import metrics, prediction_bytes, predictions, same, weights

from multitask.trainer import Trainer

# Interrupted and resumed


def interrupt(monkeypatch, name: str, epoch: int, after: bool) -> None:
    """Send this process SIGINT in `Trainer.NAME` at an epoch, after or before its work."""
    original = getattr(Trainer, name)

    def stopped(self, *args: Any) -> Any:
        now = self.progress.epoch
        if now >= epoch and not after:
            signal.raise_signal(signal.SIGINT)
        result = original(self, *args)
        if now >= epoch and after:
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(Trainer, name, stopped)


MOMENTS = {
    "after an epoch": ("finish_epoch", 1, True),
    "within an epoch": ("train_step", 1, True),
    "in the middle of the first step": ("train_step", 0, True),
    "while scoring": ("evaluate", 2, True),
    "while scores are kept": ("score", 1, True),
    "between best and checkpoint": ("save", 2, False),
    "after the last epoch": ("fit", 0, True),
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_resumed_equals_uninterrupted(moment, finished, run, tmp_path, monkeypatch):
    folder, command = finished
    command = [*command, "--output", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        interrupt(patch, *moment)
        stopped = run(*command)
    assert stopped.returncode == 130
    assert "--resume" in stopped.stderr.splitlines()[-1]
    assert not (tmp_path / "run" / "metrics.json").exists()
    assert run(*command, "--resume").returncode == 0
    assert prediction_bytes(tmp_path / "run") == prediction_bytes(folder)
    for file in ("model", "heads"):
        assert same(weights(tmp_path / "run", file), weights(folder, file))
    found, expected = metrics(tmp_path / "run"), metrics(folder)
    for key in ("dev", "history", "best_epoch", "epochs", "steps"):
        assert found[key] == expected[key]


# Started from another run


def test_init_starts_from_the_other_runs_encoder_and_heads(finished, small, ran, tmp_path):
    folder, _ = finished
    command = ["--mode", "single", "--encoder", "tiny", "--data", small, "--init", folder]
    still = ["--epochs", "1", "--steps-per-epoch", "1", "--lr", "1e-20", "--head-lr", "1e-20"]
    found = ran(*command, *still, "--task", "sst", "--output", tmp_path / "sst")
    assert f"heads initialised from {folder}: sst" in found.stdout
    assert metrics(tmp_path / "sst")["dev"]["sst"] == metrics(folder)["dev"]["sst"]
    assert predictions(tmp_path / "sst", "sst", "test") == predictions(folder, "sst", "test")


def test_init_leaves_heads_of_another_shape_fresh(finished, small, ran, tmp_path):
    folder, _ = finished
    command = ["--mode", "single", "--encoder", "tiny", "--data", small, "--init", folder]
    head = ["--task", "qqp", "--qqp-head", "concat", "--epochs", "1", "--output", tmp_path / "qqp"]
    found = ran(*command, *head)
    assert f"heads initialised from {folder}: none" in found.stdout
