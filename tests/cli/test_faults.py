"""What a machine does to a run: another run in its folder, no memory left, a full disk."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from run_files import prediction_bytes

import cli
from common.atomic_files import file_lock
from multitask.checkpoint_folders import integrity_error, newest_first
from multitask.trainer import Trainer

ROOT = Path(cli.__file__).parents[1]


def test_the_folder_of_a_live_run_is_left_unchanged(interrupted, finished, refused, run):
    folder, command = interrupted
    with file_lock(folder / "run"):
        for flags in ((), ("--resume",), ("--overwrite",)):
            line = refused(1, *command, *flags)
            assert f"{folder}: expected no running process in it, found one" in line
        ensemble = ("--mode", "ensemble", "--runs", finished[0], "--output", folder, "--overwrite")
        assert "expected no running process in it" in refused(1, *ensemble)
    assert run(*command, "--resume").returncode == 0


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_memory_left_is_reported_with_the_flag_that_helps(
    error, interrupted, refused, monkeypatch
):
    folder, command = interrupted

    def fails(self, drawn):
        raise error

    monkeypatch.setattr(Trainer, "train_step", fails)
    found = refused.run(*command, "--resume")
    assert found.returncode == 1
    *_, line = found.stderr.splitlines()
    assert line.startswith("run.py: out of memory with 16 examples at a time: a new run with")
    assert "--micro-batch 8" in line
    assert newest_first(folder / "checkpoint")


def test_any_other_error_of_torch_is_no_users_error(interrupted, monkeypatch, run):
    def fails(self, drawn):
        raise RuntimeError("a bug")

    monkeypatch.setattr(Trainer, "train_step", fails)
    with pytest.raises(RuntimeError, match="a bug"):
        run(*interrupted[1], "--resume")


@pytest.mark.slow
@pytest.mark.parametrize("kilobytes", [1, 600])
def test_a_full_disk_ends_in_one_line_and_the_run_goes_on_later(
    kilobytes, interrupted, finished, run
):
    """A limit on the size of files stands for the disk."""
    folder, command = interrupted
    limit = f'ulimit -f {kilobytes}; exec "$@"'
    argv = ["bash", "-c", limit, "-", sys.executable, "run.py", *map(str, command), "--resume"]
    found = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 1, found.stderr
    assert "Traceback" not in found.stderr
    assert "File too large" in found.stderr.splitlines()[-1]
    assert not (folder / "metrics.json").exists()
    assert integrity_error(newest_first(folder / "checkpoint")[0]) is None
    assert run(*command, "--resume").returncode == 0
    assert prediction_bytes(folder) == prediction_bytes(finished[0])


@pytest.mark.parametrize("changed", [("--data", "nowhere"), ("--encoder", "nowhere/at-all")])
def test_a_wrong_path_overwrites_nothing(changed, run_copy, run):
    folder, command = run_copy
    before = prediction_bytes(folder)
    found = run(*command, *changed, "--overwrite")
    assert found.returncode in (1, 2)
    assert changed[1] in found.stderr.splitlines()[-1]
    assert prediction_bytes(folder) == before
    assert (folder / "metrics.json").exists()
