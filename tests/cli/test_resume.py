"""Interrupted and failing runs: what is resumed ends as if nothing had happened, bit for bit."""

import signal
from typing import Any

import pytest
from run_files import metrics, prediction_bytes, predictions, same, weights

from multitask.loop.trainer import Trainer


def interrupt(monkeypatch, name: str, epoch: int, after: bool) -> None:
    """Send this process SIGINT in a method at an epoch, after or before its work."""
    original = getattr(Trainer, name)

    def interrupted(self, *args: Any, **more: Any) -> Any:
        now = self.progress.epoch
        if now >= epoch and not after:
            signal.raise_signal(signal.SIGINT)
        result = original(self, *args, **more)
        if now >= epoch and after:
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(Trainer, name, interrupted)


MOMENTS = {
    "within an epoch": ("train_step", 1, True),
    "while scoring": ("evaluate", 2, True),
    "between best and checkpoint": ("save", 2, False),
    "after the last epoch": ("fit", 0, True),
}


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_resumed_run_is_the_same(moment, finished, run, run_ok, tmp_path, monkeypatch):
    folder, command = finished
    command = [*command, "--output", str(tmp_path / "run")]
    with monkeypatch.context() as patch:
        interrupt(patch, *moment)
        result = run(*command)
    assert result.returncode == 130
    assert "--resume" in result.stderr.splitlines()[-1]
    assert not (tmp_path / "run" / "metrics.json").exists()
    run_ok(*command, "--resume")
    assert prediction_bytes(tmp_path / "run") == prediction_bytes(folder)
    for file in ("model", "heads"):
        assert same(weights(tmp_path / "run", file), weights(folder, file))
    resumed, expected = metrics(tmp_path / "run"), metrics(folder)
    for key in ("dev", "history", "best_epoch", "epochs", "steps"):
        assert resumed[key] == expected[key]


@pytest.mark.parametrize(
    ("flags", "heads"),
    [
        ("--task sst --steps-per-epoch 1 --lr 1e-20 --head-lr 1e-20", "the head of sst"),
        ("--task qqp --qqp-head concat", "new heads"),  # a head of another shape is not used
    ],
)
def test_init_loads_encoder_and_fitting_heads(flags, heads, finished, small, run_ok, tmp_path):
    folder, _ = finished
    command = ("--mode", "single", "--encoder", "tiny", "--data", small, "--init", folder)
    result = run_ok(*command, *flags.split(), "--epochs", "1", "--output", tmp_path / "run")
    assert f"starts with the encoder of {folder} and {heads}" in result.stdout
    if "sst" in heads:  # nothing was learnt
        assert metrics(tmp_path / "run")["dev"]["sst"] == metrics(folder)["dev"]["sst"]
        assert predictions(tmp_path / "run", "sst", "test") == predictions(folder, "sst", "test")


def test_a_run_goes_on_with_the_settings_in_its_folder(interrupted, finished, error_line, run_ok):
    folder, _ = interrupted
    other = ("--mode", "multitask", "--seed", 3, "--output", folder, "--resume")
    line = error_line(1, *other)
    assert f"go on with --config {folder / 'config.json'}" in line
    flags = ("--mode", "multitask", "--config", folder / "config.json", "--output", folder)
    run_ok(*flags, "--resume")
    assert metrics(folder)["dev"] == metrics(finished[0])["dev"]
