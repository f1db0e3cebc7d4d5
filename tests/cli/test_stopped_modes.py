"""Whatever trains goes on where it was stopped and ends as if it had not been, bit for bit."""

from __future__ import annotations

import json
import signal

import pytest

import cli
from multitask.trainer import Trainer

SMALL = ("--encoder", "tiny", "--dev-limit", "20", "--limit", "40")
TRAINED = (*SMALL, "--epochs", "1")
PRETRAINING = {
    "simcse": (
        *("--tasks", "sst", "sts", "--objective", "simcse"),
        *("--batch-size", "8", "--epochs", "2"),
    ),
    "superloss, hard negatives from a later epoch on": (
        *("--tasks", "sst", "--objective", "superloss", "--batch-size", "10", "--epochs", "3"),
        *("--hard-top-k", "2", "--hard-after", "1"),
    ),
}


@pytest.fixture
def interrupt(monkeypatch):
    """`interrupt(step)` lets the signal come in the middle of that step, counted over all runs."""

    def arm(at: int) -> None:
        taken, train = 0, Trainer.train_step

        def step(trainer, drawn):
            nonlocal taken
            taken += 1
            if taken == at:
                signal.raise_signal(signal.SIGINT)
            return train(trainer, drawn)

        patch.setattr(Trainer, "train_step", step)

    with monkeypatch.context() as patch:
        arm.off = patch.undo
        yield arm


def computed(folder):
    """Weights and predictions of every run in a folder, byte for byte, and the losses of fronts."""
    kept = [*folder.rglob("best/*.safetensors"), *folder.rglob("predictions/*.csv")]
    found = {str(file.relative_to(folder)): file.read_bytes() for file in kept}
    assert found
    fronts = {
        str(f.relative_to(folder)): json.loads(f.read_text()) for f in folder.rglob("front.json")
    }
    return found | fronts


def check_same(run, interrupt, tmp_path, command, step, *again):
    """`command` stopped at a step and called again with the flags `again`, beside it left alone."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert run(*command(whole)).returncode == 0
    interrupt(step)
    stopped = run(*command(broken))
    assert stopped.returncode == 130, stopped.stderr
    assert stopped.stderr.splitlines()[-1].startswith("run.py: interrupted")
    interrupt.off()
    resumed = run(*command(broken), *again)
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed after step" in resumed.stdout
    assert computed(broken) == computed(whole)


@pytest.mark.parametrize("flags", PRETRAINING.values(), ids=PRETRAINING)
@pytest.mark.parametrize("step", [2, 9])
def test_pretraining(run, interrupt, tmp_path, flags, step):
    def command(folder):
        return ("--mode", "pretrain", *TRAINED, *flags, "--output", folder)

    check_same(run, interrupt, tmp_path, command, step, "--resume")


def test_a_sweep_goes_on_with_the_ray_that_was_stopped(run, interrupt, tmp_path):
    sweep = ("--mode", "pareto", "--tasks", "sst", "sts", "--preferences", "3", *TRAINED)

    def command(folder):
        return (*sweep, "--steps-per-epoch", "3", "--output", folder)

    check_same(run, interrupt, tmp_path, command, 5)


def test_a_study_goes_on_with_the_cell_that_was_stopped(run, interrupt, tmp_path):
    study = ("--mode", "reproduce", "--table", "bees", "--rows", "M13", "M16", "--encoder", "tiny")

    def command(folder):
        folders = ("--results", folder / "results", "--runs", folder / "runs")
        return (*study, "--limit", "40", "--epochs", "1", *folders)

    check_same(run, interrupt, tmp_path, command, 4)  # one of SimCSE, three of M13


def test_a_bilstm(run, interrupt, tmp_path):
    words = ("--mode", "bilstm", "--tasks", "sst", "--limit", "40", "--embedding-size", "16")
    encoder = tmp_path / "encoder"
    assert cli.main([*words, "--units", "8", "--output", str(encoder)]) == 0

    def command(folder):
        trained = ("--mode", "single", "--task", "sst", "--encoder", encoder, "--dev-limit", "20")
        return (*trained, "--limit", "40", "--epochs", "2", "--output", folder)

    check_same(run, interrupt, tmp_path, command, 4, "--resume")
