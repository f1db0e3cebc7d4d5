"""The figures of a finished run are those that it wrote: an edited metrics.json is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from common.json_files import SEAL, read_json, write_json, write_sealed
from multitask.atomic_dirs import CONFIG, seal


@pytest.fixture
def runs(run_copy, tmp_path):
    """A finished run, the command that made it, and another copy."""
    folder, command = run_copy
    return folder, command, Path(shutil.copytree(folder, tmp_path / "other"))


def uses(folder, command, other):
    """Commands that read a run's metrics."""
    return {
        "compare": ("--mode", "compare", "--runs", f"a={folder}", f"b={other}"),
        "ensemble": ("--mode", "ensemble", "--runs", folder, other, "--output", f"{other}-both"),
        "export": ("--mode", "export", "--run", folder, "--output", f"{other}-export"),
        "the run itself": command,
    }


@pytest.mark.parametrize("use", ["compare", "ensemble", "export", "the run itself"])
def test_an_edited_figure_is_refused(use, runs, refused):
    file = runs[0] / "metrics.json"
    content = read_json(file)
    content["dev"]["sst"]["accuracy"] = 0.99
    write_json(file, content)
    line = refused(1, *uses(*runs)[use])
    assert f"{file}: edited: its content and its sha256 do not agree; restore it, or" in line


def test_a_list_of_runs_names_the_edited_one(runs, run):
    file = runs[0] / "metrics.json"
    write_json(file, read_json(file) | {"best_epoch": 1, "steps": 3})
    found = run("--mode", "runs", "--root", runs[0].parent)
    assert found.returncode == 1
    assert f"cannot be read: {file}: edited" in found.stdout


def test_metrics_that_lost_their_checksum_are_refused(runs, refused):
    file = runs[0] / "metrics.json"
    content = read_json(file)
    del content[SEAL]
    write_json(file, content)
    line = refused(1, *uses(*runs)["compare"])
    assert f"{file}: expected its sha256 key, found none" in line


def test_a_run_of_an_older_version_is_read(runs, run):
    best, file = runs[0] / "checkpoint/best", runs[0] / "metrics.json"
    (best / CONFIG).unlink()
    seal(best)
    content = read_json(file)
    del content[SEAL]
    write_json(file, content)
    found = run(*uses(*runs)["the run itself"])
    assert (found.returncode, found.stderr) == (0, "")
    assert f"{content['dev']['overall']:.4f}" in found.stdout


@pytest.mark.parametrize(
    ("figure", "expected"),
    [(1.5, "accuracy: expected a number from 0 to 1, found 1.5"), (float("nan"), "finite number")],
)
def test_figures_that_cannot_be_are_refused(figure, expected, runs, refused):
    file = runs[0] / "metrics.json"
    content = json.loads(file.read_text())
    content["dev"]["sst"]["accuracy"] = figure
    write_sealed(file, content)
    line = refused(1, *uses(*runs)["compare"])
    assert f"{file}: " in line
    assert expected in line
