"""What a run's folder holds belongs together: checkpoints, weights, configuration and metrics."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from run_files import config

from common.files import read_json, write_json
from multitask.run_folder import RunFolder

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")


def edit_config(folder: Path, **changes: object) -> None:
    (folder / "config.json").write_text(json.dumps(config(folder) | changes))


def replace_folder(target: Path, source: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(source, target)


@pytest.mark.parametrize("kind", ["last", "best"])
def test_resume_refuses_checkpoints_of_other_runs(kind, interrupted, stopped, error_line):
    folder, command = interrupted
    mine, other = (RunFolder(one).newest(kind) for one in (folder, stopped("--seed", "3")))
    replace_folder(mine, other)
    line = error_line(1, *command, "--resume")
    assert f"{mine}: expected a checkpoint of {folder / 'config.json'}, found another seed" in line
    assert "--overwrite" in line


USES = {
    "predict": lambda run, out: ("--mode", "predict", "--run", run),
    "export": lambda run, out: ("--mode", "export", "--run", run, "--output", out),
    "init": lambda run, out: (*SST, "--limit", "8", "--init", run, "--output", out),
}


@pytest.fixture(params=USES.values(), ids=USES)
def use(request, monkeypatch, tmp_path):
    """`use(run)`: a command that uses a run's best weights."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\ta dog\n")))
    return lambda folder: request.param(folder, tmp_path / "out")


def test_weights_of_other_runs_are_refused(use, run_copy, stopped, error_line):
    folder, _ = run_copy
    edit_config(folder, pooling="max")
    line = error_line(1, *use(folder))
    assert f"{folder}/best: expected a checkpoint of {folder}/config.json" in line
    assert "found another pooling" in line
    edit_config(folder, pooling=None)
    other = stopped("--seed", "3")
    replace_folder(folder / "best", RunFolder(other).newest("best"))
    assert "found another seed" in error_line(1, *use(folder))


def test_an_impossible_metric_is_refused(run_copy, error_line, run, tmp_path):
    folder, command = run_copy
    content = read_json(folder / "metrics.json")
    content["dev"]["sst"]["accuracy"] = 1.5
    write_json(folder / "metrics.json", content)
    out = ("--output", tmp_path / "out")
    for argv in (
        ("--mode", "compare", "--runs", folder, *out),
        ("--mode", "ensemble", "--runs", folder, *out),
        ("--mode", "export", "--run", folder, *out),
        command,
    ):
        line = error_line(1, *argv)
        assert f"{folder / 'metrics.json'}: " in line
        assert "accuracy: expected a number from 0 to 1, found 1.5" in line
    result = run("--mode", "runs", "--root", folder.parent)
    assert (result.returncode, "cannot be read: " in result.stdout) == (1, True)
