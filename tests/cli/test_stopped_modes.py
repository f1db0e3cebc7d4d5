"""Whatever trains goes on where it was stopped and ends as if it had not been, bit for bit."""

import json
import signal

import pytest

from multitask.trainer import Trainer

SMALL = "--encoder tiny --limit 40"
PRETRAIN = f"--mode pretrain {SMALL} --dev-limit 20 --resume"
PRETRAINING = {
    "simcse": "--tasks sst sts --objective simcse --batch-size 8 --epochs 2",
    "superloss, hard negatives from a later epoch on": (
        "--tasks sst --objective superloss --batch-size 10 --epochs 3 --hard-top-k 2 --hard-after 1"
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


@pytest.fixture
def check_same(run, ran, interrupt, tmp_path):
    """`check_same(flags, step, **folders)`: stopped at a step and called again, and not stopped."""

    def check(flags, step, **folders):
        def command(name):
            places = [(f"--{flag}", tmp_path / name / one) for flag, one in folders.items()]
            return (*flags.split(), *(part for place in places for part in place))

        ran(*command("whole"))
        interrupt(step)
        stopped = run(*command("broken"))
        assert stopped.returncode == 130, stopped.stderr
        assert stopped.stderr.splitlines()[-1].startswith("run.py: interrupted")
        interrupt.off()
        assert "resumed after step" in ran(*command("broken")).stdout
        assert computed(tmp_path / "broken") == computed(tmp_path / "whole")

    return check


@pytest.mark.parametrize("flags", PRETRAINING.values(), ids=PRETRAINING)
@pytest.mark.parametrize("step", [2, 9])
def test_pretraining(check_same, flags, step):
    check_same(f"{PRETRAIN} {flags}", step, output="run")


def test_a_sweep_goes_on_with_the_ray_that_was_stopped(check_same):
    sweep = f"--mode pareto --tasks sst sts --preferences 3 --dev-limit 20 {SMALL} --epochs 1"
    check_same(f"{sweep} --steps-per-epoch 3", 5, output="run")


def test_a_study_goes_on_with_the_cell_that_was_stopped(check_same):
    study = f"--mode reproduce --table bees --rows M13 M16 {SMALL} --epochs 1"
    check_same(study, 4, results="results", runs="runs")  # one of SimCSE, three of M13


def test_a_bilstm(check_same, ran, tmp_path):
    words = "--mode bilstm --tasks sst --limit 40 --embedding-size 16 --units 8"
    ran(*words.split(), "--output", tmp_path / "encoder")
    single = "--mode single --task sst --limit 40 --dev-limit 20 --epochs 2 --resume"
    check_same(f"{single} --encoder {tmp_path / 'encoder'}", 4, output="run")
