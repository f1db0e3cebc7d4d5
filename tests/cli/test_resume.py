"""Interrupted and failing runs: what is resumed ends as if nothing had happened, bit for bit."""

import json
import shlex
import signal
import subprocess
import sys
from typing import Any

import pytest
import torch
from run_files import ROOT, metrics, prediction_bytes, predictions, same, weights

import cli.multitask
import cli.pretrain
import cli.single
from common.json_files import integrity_error
from multitask.checkpoint import Progress
from multitask.checkpoint_folders import newest_first
from multitask.config import RunConfig
from multitask.repeated_flags import flags_to_repeat
from multitask.trainer import Trainer


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
SWEEP = (
    f"--mode pareto --tasks sst sts --preferences 3 --dev-limit 20 {SMALL} --epochs 1 "
    "--steps-per-epoch 3 --output DIR/run"
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
def bilstm(run_ok, tmp_path):
    words = "--mode bilstm --tasks sst --limit 40 --embedding-size 16 --units 8 --output"
    run_ok(*words.split(), tmp_path / "encoder")
    return tmp_path / "encoder"


@pytest.mark.parametrize(
    ("command", "step"),  # the step is counted over all runs of the command
    [
        pytest.param(SIMCSE, 2, id="simcse"),
        pytest.param(SIMCSE, 9, id="simcse, second epoch"),
        pytest.param(HARD_NEGATIVES, 2, id="before hard negatives"),
        pytest.param(HARD_NEGATIVES, 9, id="with hard negatives"),
        pytest.param(SWEEP, 5, id="second ray of a sweep"),
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
    assert line.startswith("run.py: out of memory with 16 examples at a time: a new run with")
    assert "--micro-batch 8" in line
    assert newest_first(folder / "checkpoint")


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
    assert integrity_error(newest_first(folder / "checkpoint")[0]) is None
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


ALL = "--mode multitask --encoder tiny"
SST = "--mode single --task sst"
BEGAN = [  # flags of a run, those with which it is resumed, and the instructions
    (f"{ALL} --limit 40", "--mode multitask", "repeat --limit 40 --encoder tiny"),
    (f"{ALL} --tasks sst sts", ALL, "repeat --tasks sst sts"),
    (f"{ALL} --epochs 2", f"{ALL} --epochs 5", "change to --epochs 2"),
    (ALL, f"{ALL} --pooling max --limit 9", "leave out --limit --pooling"),
    (
        f"{SST} --freeze-encoder --seed 3 --clip 2",
        f"{SST} --clip 3 --patience 2",
        "repeat --freeze-encoder --seed 3; change to --clip 2.0; leave out --patience",
    ),
    (f"{SST} --sst-head softmax", SST, "repeat --sst-head softmax"),
    (f"{ALL} --pair joint", ALL, "repeat --pair joint"),
    (ALL, f"{ALL} --pair joint", "leave out --pair"),
    (f"{SST} --drop-leaks own", SST, "repeat --drop-leaks own"),
    (f"{SST} --drop-leaks", f"{SST} --drop-leaks own", "change to --drop-leaks"),
    (f"{ALL} --pcgrad", ALL, "repeat --combiner pcgrad"),
    (
        ALL,
        f"{ALL} --combiner epo --preference 1 2 3",
        "change to --combiner sum; leave out --preference",
    ),
    (f"{ALL} --smart-weight 1", ALL, "repeat --smart-weight 1.0"),
    (
        f"{ALL} --smart-weight sst=1 --limit sst=9",
        ALL,
        "repeat --smart-weight sst=1.0 --limit sst=9",
    ),
    (f"{ALL} --batches-per-step 2", ALL, "repeat --batches-per-step 2"),
    (f"{ALL} --schedule individual", ALL, "repeat --schedule individual"),
    (f"{ALL} --preset bees", ALL, "repeat --preset bees"),
    (
        "--mode pretrain --objective pairs --text 'a b.csv' --text-column one other",
        "--mode pretrain --objective simcse",
        "repeat --text 'a b.csv' --text-column one other; change to --objective pairs",
    ),
    (
        "--mode pretrain --objective simcse --tasks sst --epochs 3",
        "--mode pretrain --objective simcse --tasks sst sts --batch-size 8",
        "repeat --tasks sst --epochs 3; change to --batch-size 64",
    ),
    (f"{ALL} --data 'a b'", ALL, "repeat --data 'a b'"),
]


@pytest.fixture
def parsed(monkeypatch, run_ok):
    """`parsed(*flags)` is the configuration of a command, which is not trained."""
    found = []

    def keep(config, args):
        found.append(config)
        return 0

    monkeypatch.setattr(cli.single, "train", keep)
    monkeypatch.setattr(cli.multitask, "train", keep)
    monkeypatch.setattr(cli.pretrain, "train", keep)
    return lambda *flags: (run_ok(*flags), found.pop())[1]


def followed(flags: list[str], instructions: str) -> list[str]:
    """Flags after the instructions were followed."""
    for part in instructions.split("; "):
        words = [word for word in shlex.split(part) if word not in ("repeat", "change", "to")]
        named = {word for word in words if word.startswith("--")}
        kept, drops = [], False
        for word in flags:
            drops = word in named if word.startswith("--") else drops
            kept += [] if drops else [word]
        flags = kept if part.startswith("leave out") else [*kept, *words]
    return flags


@pytest.mark.parametrize(("began", "now", "expected"), BEGAN)
def test_following_the_instructions_gives_the_settings_of_the_run(began, now, expected, parsed):
    first = RunConfig.from_json(parsed(*shlex.split(began)).to_json())
    config = parsed(*shlex.split(now))
    assert flags_to_repeat(config, first) == expected
    again = parsed(*followed(shlex.split(now), expected))
    assert again.difference(first.to_json()) is None
    assert flags_to_repeat(again, first) == ""


def test_resuming_with_other_flags_says_which_ones_to_repeat(
    interrupted, small, error_line, run_ok
):
    folder, command = interrupted
    resume = ("--mode", "multitask", "--seed", "3", "--output", folder, "--resume")
    line = error_line(1, *resume)
    expected = (
        f"repeat --data {small} --encoder tiny --epochs 2 --sampling annealed --combiner pcgrad; "
    )
    assert f"found others: {expected}change to --seed 11711; or choose another --output" in line
    assert "seed is 11711 there and 3 here" in error_line(1, *command, "--seed", "3")
    run_ok(*command, "--resume")


def test_resuming_nothing_is_said(run_ok, tmp_path):
    flags = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--limit", 8, "--epochs", 1)
    shown = run_ok(*flags, "--dev-limit", 8, "--output", tmp_path / "new", "--resume").stdout
    assert f"--resume: found no run in {tmp_path / 'new'}; it starts from the beginning" in shown
