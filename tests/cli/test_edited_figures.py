"""The figures of a finished run are those that it wrote: an edited metrics.json is refused."""

import shutil
from pathlib import Path

import pytest

from common.json_files import SEAL, read_json, write_json, write_sealed
from multitask.checkpoint_folders import CONFIG, seal


@pytest.fixture
def runs(run_copy, tmp_path):
    """A finished run, the command that made it, and another copy."""
    folder, command = run_copy
    return folder, command, Path(shutil.copytree(folder, tmp_path / "other"))


@pytest.fixture
def metrics(runs):
    """The file of its figures, and what it holds."""
    file = runs[0] / "metrics.json"
    return file, read_json(file)


def uses(folder, command, other):
    """Commands that read a run's metrics."""
    return {
        "compare": ("--mode", "compare", "--runs", f"a={folder}", f"b={other}"),
        "ensemble": ("--mode", "ensemble", "--runs", folder, other, "--output", f"{other}-both"),
        "export": ("--mode", "export", "--run", folder, "--output", f"{other}-export"),
        "the run itself": command,
    }


@pytest.mark.parametrize("use", ["compare", "ensemble", "export", "the run itself"])
def test_an_edited_figure_is_refused(use, runs, metrics, refused, run):
    file, content = metrics
    content["dev"]["sst"]["accuracy"] = 0.99
    write_json(file, content)
    line = refused(1, *uses(*runs)[use])
    assert f"{file}: edited: its content and its sha256 do not agree; restore it, or" in line
    found = run("--mode", "runs", "--root", runs[0].parent)
    assert found.returncode == 1
    assert f"cannot be read: {file}: edited" in found.stdout


def test_only_runs_of_an_older_version_may_lack_the_checksum(runs, metrics, refused, ran):
    file, content = metrics
    del content[SEAL]
    write_json(file, content)
    line = refused(1, *uses(*runs)["compare"])
    assert f"{file}: expected its sha256 key, found none" in line
    best = runs[0] / "checkpoint/best"
    (best / CONFIG).unlink()
    seal(best)
    found = ran(*uses(*runs)["the run itself"])
    assert found.stderr == ""
    assert f"{content['dev']['overall']:.4f}" in found.stdout


@pytest.mark.parametrize(
    ("figure", "expected"),
    [(1.5, "accuracy: expected a number from 0 to 1, found 1.5"), (float("nan"), "finite number")],
)
def test_figures_that_cannot_be_are_refused(figure, expected, runs, metrics, refused):
    file, content = metrics
    content["dev"]["sst"]["accuracy"] = figure
    write_sealed(file, content)
    line = refused(1, *uses(*runs)["compare"])
    assert f"{file}: " in line
    assert expected in line
