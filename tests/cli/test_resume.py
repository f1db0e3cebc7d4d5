"""Interrupted and failing runs: what is resumed ends as if nothing had happened, bit for bit."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
import torch
from run_files import ROOT, metrics, prediction_bytes, predictions, same, weights

from common.files import read_state
from minbert.bi_encoder import BiEncoder
from minbert.words import build_bilstm
from multitask.loop.progress import Progress
from multitask.loop.trainer import Trainer
from multitask.run_folder import RunFolder


def interrupt(monkeypatch, name: str, epoch: int, after: bool) -> None:
    """Send this process SIGINT in a method at an epoch, after or before its work."""
    owner = Progress if hasattr(Progress, name) else Trainer
    original = getattr(owner, name)

    def interrupted(self, *args: Any, **more: Any) -> Any:
        now = getattr(self, "progress", self).epoch
        if now >= epoch and not after:
            signal.raise_signal(signal.SIGINT)
        result = original(self, *args, **more)
        if now >= epoch and after:
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, interrupted)


MOMENTS = {
    "within an epoch": ("train_step", 1, True),
    "in the middle of the first step": ("train_step", 0, True),
    "while scoring": ("evaluate", 2, True),
    "while scores are kept": ("add_score", 1, True),
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


# Every mode that trains


def computed(folder):
    """Weights and predictions of every run in a folder, byte for byte, and the losses of fronts."""
    files = [*folder.rglob("best/*.safetensors"), *folder.rglob("predictions/*.csv")]
    assert files
    files += folder.rglob("front.json")
    return {
        str(file.relative_to(folder)): json.loads(file.read_text())
        if file.suffix == ".json"
        else file.read_bytes()
        for file in files
    }


SMALL = "--encoder tiny --limit 40"
PRETRAIN = f"--mode pretrain {SMALL} --dev-limit 20 --resume --output DIR/run"
SIMCSE = f"{PRETRAIN} --tasks sst sts --objective simcse --batch-size 8 --epochs 2"
HARD_NEGATIVES = (
    f"{PRETRAIN} --tasks sst --objective superloss --batch-size 10 --epochs 3 --hard-top-k 2 "
    "--hard-after 1"
)
STUDY = (
    f"--mode reproduce --table bees --rows M13 M16 {SMALL} --epochs 1 --results DIR/results "
    "--runs DIR/runs"
)
BILSTM = (
    "--mode single --task sst --limit 40 --dev-limit 20 --epochs 2 --resume --encoder ENCODER "
    "--output DIR/run"
)


@pytest.fixture
def bilstm(tmp_path):
    build_bilstm(tmp_path / "encoder", ["a film to love"], units=8, embedding_size=16)
    return tmp_path / "encoder"


def test_a_run_does_not_go_on_or_answer_with_another_encoder(
    tmp_path, run, run_ok, error_line, monkeypatch
):
    """Pooling and tokens are those of the encoder's folder, not of the checkpoint."""
    encoder = tmp_path / "encoder"
    BiEncoder.from_pretrained("tiny").save_pretrained(encoder)
    flags = f"--mode single --task sts {SMALL} --dev-limit 20 --epochs 2 --resume".split()
    command = (*flags, "--encoder", encoder, "--output", tmp_path / "run")
    with monkeypatch.context() as patch:
        interrupt(patch, "train_step", 1, after=True)
        assert run(*command).returncode == 130
    BiEncoder.from_pretrained("tiny", pooling="max").save_pretrained(encoder)
    line = "the run began with another encoder than there is now"
    assert line in error_line(1, *command)
    BiEncoder.from_pretrained("tiny").save_pretrained(encoder)
    run_ok(*command)
    assert "holds this run, finished" in run_ok(*command).stdout
    BiEncoder.from_pretrained("tiny", pooling="max").save_pretrained(encoder)
    assert line in error_line(1, *command)


@pytest.mark.parametrize(
    ("command", "step"),  # the step is counted over all runs of the command
    [
        pytest.param(SIMCSE, 2, id="simcse"),
        pytest.param(SIMCSE, 9, id="simcse, second epoch"),
        pytest.param(HARD_NEGATIVES, 2, id="before hard negatives"),
        pytest.param(HARD_NEGATIVES, 9, id="with hard negatives"),
        pytest.param(STUDY, 4, id="a cell after its pre-training"),
        pytest.param(BILSTM, 4, id="bilstm"),
    ],
)
def test_every_mode_resumes_in_a_step(command, step, request, run, run_ok, monkeypatch, tmp_path):
    if "ENCODER" in command:
        command = command.replace("ENCODER", str(request.getfixturevalue("bilstm")))
    whole, broken = (
        command.replace("DIR", str(tmp_path / name)).split() for name in ("whole", "broken")
    )
    run_ok(*whole)
    taken, train_step = 0, Trainer.train_step

    def interrupted(trainer, drawn):
        nonlocal taken
        taken += 1
        if taken == step:
            signal.raise_signal(signal.SIGINT)
        return train_step(trainer, drawn)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_step", interrupted)
        result = run(*broken)
    assert result.returncode == 130, result.stderr
    assert result.stderr.splitlines()[-1].startswith("run.py: interrupted")
    assert "resumed after step" in run_ok(*broken).stdout
    assert computed(tmp_path / "broken") == computed(tmp_path / "whole")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
        RuntimeError("a bug"),
    ],
    ids=lambda error: str(error)[:10],
)
def test_lack_of_memory_is_reported_with_a_flag_that_helps(error, interrupted, run, monkeypatch):
    folder, command = interrupted

    def fails(self, drawn):
        raise error

    monkeypatch.setattr(Trainer, "train_step", fails)
    if "bug" in str(error):
        with pytest.raises(RuntimeError, match="a bug"):
            run(*command, "--resume")
        return
    result = run(*command, "--resume")
    assert result.returncode == 1
    *_, line = result.stderr.splitlines()
    assert line.startswith("run.py: out of memory: use a smaller --encoder, --micro-batch or")
    assert RunFolder(folder).newest("last")


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [1, 600])
def test_a_run_is_resumed_after_a_full_disk(kilobytes, interrupted, finished, run_ok):
    """A limit on the size of files stands for the disk."""
    folder, command = interrupted
    limit = f'ulimit -f {kilobytes}; exec "$@"'
    argv = ["bash", "-c", limit, "-", sys.executable, "run.py", *map(str, command), "--resume"]
    result = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stderr
    assert "Traceback" not in result.stderr
    assert "File too large" in result.stderr.splitlines()[-1]
    assert not (folder / "metrics.json").exists()
    assert read_state(RunFolder(folder).newest("last"))
    run_ok(*command, "--resume")
    assert prediction_bytes(folder) == prediction_bytes(finished[0])


@pytest.mark.parametrize(
    ("flags", "heads"),
    [
        ("--task sst --steps-per-epoch 1 --lr 1e-20 --head-lr 1e-20", "sst"),
        ("--task qqp --qqp-head concat", "none"),  # a head of another shape is not used
    ],
)
def test_init_loads_encoder_and_fitting_heads(flags, heads, finished, small, run_ok, tmp_path):
    folder, _ = finished
    command = ("--mode", "single", "--encoder", "tiny", "--data", small, "--init", folder)
    result = run_ok(*command, *flags.split(), "--epochs", "1", "--output", tmp_path / "run")
    assert f"heads initialised from {folder}: {heads}" in result.stdout
    if heads == "sst":  # nothing was learnt
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
