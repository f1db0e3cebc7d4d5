"""What a run's folder holds belongs together: checkpoints, weights, configuration and metrics."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from run_files import config, prediction_bytes

from common.json_files import read_json, write_json
from multitask.storage.checkpoint_folders import CONFIG, newest_first, seal

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")


def edit_config(folder: Path, **changes: object) -> None:
    (folder / "config.json").write_text(json.dumps(config(folder) | changes))


def replace_folder(target: Path, source: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(source, target)


def without_config(checkpoint: Path) -> None:
    """Remove the configuration of its run from a checkpoint."""
    (checkpoint / CONFIG).unlink()
    seal(checkpoint)


@pytest.mark.parametrize(
    ("part", "flags", "expected"),
    [
        ("checkpoint", ("--seed", "3"), "seed is 3 there and 11711 here"),
        ("checkpoint/best", ("--smart-weight", "1"), "smart_dropout is 'fixed' there"),
    ],
)
def test_resume_refuses_checkpoints_of_other_runs(
    part, flags, expected, interrupted, stopped, error_line
):
    folder, command = interrupted
    replace_folder(folder / part, stopped(*flags) / part)
    line = error_line(1, *command, "--resume")
    (newest,) = newest_first(folder / "checkpoint")
    place = newest if part == "checkpoint" else folder / part
    assert f"{place}: expected a checkpoint of this run, found one of another" in line
    assert expected in line
    assert "--overwrite starts again" in line


def test_resume_refuses_a_checkpoint_without_a_configuration(interrupted, error_line):
    folder, command = interrupted
    (newest,) = newest_first(folder / "checkpoint")
    without_config(newest)
    line = error_line(1, *command, "--resume")
    assert "expected the configuration of its run, found none" in line
    assert "--overwrite starts again" in line


def test_a_run_whose_data_moved_is_resumed(interrupted, finished, run_ok, tmp_path):
    folder, command = interrupted
    place = command.index("--data") + 1
    moved = tmp_path / "elsewhere" / Path(command[place]).name
    shutil.copytree(command[place], moved)
    edit_config(folder, data=str(moved))
    run_ok(*command[:place], moved, *command[place + 1 :], "--resume")
    assert prediction_bytes(folder) == prediction_bytes(finished[0])


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
    assert "pooling is None there and 'max' here" in line
    assert f"restore {folder}/config.json" in line
    edit_config(folder, pooling=None)
    replace_folder(folder / "checkpoint/best", stopped("--seed", "3") / "checkpoint/best")
    line = error_line(1, *use(folder))
    assert f"{folder}/checkpoint/best: expected a checkpoint of this run" in line
    assert "seed is 3 there and 11711 here" in line


def test_settings_of_other_machines_may_differ(use, run_copy, run_ok):
    folder, _ = run_copy
    edit_config(folder, device="cpu")
    assert run_ok(*use(folder)).stdout


def test_weights_without_the_configuration_of_their_run_are_refused(use, run_copy, error_line):
    folder, _ = run_copy
    without_config(folder / "checkpoint/best")
    assert "expected the configuration of its run, found none" in error_line(1, *use(folder))


def test_a_finished_run_with_an_edited_configuration_is_not_printed(run_copy, error_line):
    edit_config(run_copy[0], seed=3)
    assert "seed is 11711 there and 3 here" in error_line(1, *run_copy[1], "--seed", "3")


@pytest.fixture
def read_by(run_copy, tmp_path):
    """Commands that read the metrics of a copied run, by name."""
    folder, command = run_copy
    out = ("--output", tmp_path / "out")
    return {
        "compare": ("--mode", "compare", "--runs", f"a={folder}", *out),
        "ensemble": ("--mode", "ensemble", "--runs", folder, *out),
        "export": ("--mode", "export", "--run", folder, *out),
        "the run itself": command,
    }


@pytest.mark.parametrize("use", ["compare", "ensemble", "export", "the run itself"])
def test_an_impossible_metric_is_refused(use, run_copy, read_by, error_line, run):
    file = run_copy[0] / "metrics.json"
    content = read_json(file)
    content["dev"]["sst"]["accuracy"] = 1.5
    write_json(file, content)
    line = error_line(1, *read_by[use])
    assert f"{file}: " in line
    assert "accuracy: expected a number from 0 to 1, found 1.5" in line
    result = run("--mode", "runs", "--root", run_copy[0].parent)
    assert result.returncode == 1
    assert f"cannot be read: {file}: accuracy" in result.stdout
