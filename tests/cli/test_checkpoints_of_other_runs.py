"""A checkpoint is used by its own run only; what differs is named."""

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from multitask.checkpoint_folders import CONFIG, newest_first, seal

CHANGES = {
    "seed": (["--seed", "3"], "seed is 11711 there and 3 here"),
    "SMART": (["--smart-weight", "1"], "smart_weight is {} there and {"),
}


@pytest.fixture
def other(interrupted, stopped, tmp_path):
    """`other(flags)`: the interrupted run with other flags, stopped likewise; its command."""

    def make(flags: list[str]) -> tuple[Path, list[str]]:
        command = [*interrupted[1][:-1], str(tmp_path / "other"), *flags]
        stopped(command)
        return tmp_path / "other", command

    return make


def replace_folder(target: Path, source: Path) -> None:
    shutil.rmtree(target)
    shutil.copytree(source, target)


def edit(folder: Path, **changes: object) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def as_older_version(checkpoint: Path) -> None:
    """As it was written before checkpoints held the configuration of their run."""
    (checkpoint / CONFIG).unlink()
    seal(checkpoint)


@pytest.mark.parametrize("part", ["checkpoint", "checkpoint/best"])
@pytest.mark.parametrize(("flags", "expected"), CHANGES.values(), ids=CHANGES)
def test_resume_refuses_the_checkpoint_of_another_configuration(
    flags, expected, part, interrupted, other, refused
):
    folder, command = other(flags)
    replace_folder(folder / part, interrupted[0] / part)
    line = refused(1, *command, "--resume")
    (newest,) = newest_first(folder / "checkpoint")
    place = newest if part == "checkpoint" else folder / part
    assert f"{place}: expected a checkpoint of this run, found one of another" in line
    assert expected in line
    assert "--overwrite starts again" in line


def test_resume_refuses_a_checkpoint_of_an_older_version(interrupted, refused):
    folder, command = interrupted
    (newest,) = newest_first(folder / "checkpoint")
    as_older_version(newest)
    line = refused(1, *command, "--resume")
    assert "expected the configuration of its run, found none: written by an older version" in line
    assert "--overwrite starts again" in line


def test_resume_goes_on_with_data_that_moved_in_its_own_run(interrupted, run, tmp_path):
    folder, command = interrupted
    place = command.index("--data") + 1
    moved = tmp_path / "elsewhere" / Path(command[place]).name
    shutil.copytree(command[place], moved)
    edit(folder, data=str(moved))
    moved_command = [*command[:place], str(moved), *command[place + 1 :]]
    assert run(*moved_command, "--resume").returncode == 0


USES = {
    "predict": lambda run, out: ("--mode", "predict", "--run", run),
    "export": lambda run, out: ("--mode", "export", "--run", run, "--output", out),
    "init": lambda run, out: (
        *("--mode", "single", "--task", "sst", "--epochs", "1", "--limit", "8"),
        *("--init", run, "--output", out),
    ),
}


@pytest.fixture(params=USES.values(), ids=USES)
def use(request, monkeypatch, tmp_path):
    """`use(run)`: a command that uses a run's best weights."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\ta dog\n")))
    return lambda folder: request.param(folder, tmp_path / "out")


def test_best_weights_of_another_run_are_refused(use, run_copy, interrupted, other, refused):
    folder, _ = run_copy
    replace_folder(folder / "checkpoint/best", other(["--seed", "3"])[0] / "checkpoint/best")
    line = refused(1, *use(folder))
    assert f"{folder}/checkpoint/best: expected a checkpoint of this run" in line
    assert "seed is 3 there and 11711 here" in line


def test_an_edited_configuration_is_refused(use, run_copy, refused):
    folder, _ = run_copy
    edit(folder, pooling="max")
    line = refused(1, *use(folder))
    assert "pooling is None there and 'max' here" in line
    assert f"restore {folder}/config.json" in line


def test_a_machines_settings_may_be_edited(use, run_copy, run):
    folder, _ = run_copy
    edit(folder, device="cpu", linear="mkl")
    found = run(*use(folder))
    assert (found.returncode, "best" in found.stderr) == (0, False)


def test_best_weights_of_an_older_version_are_used_with_a_line(use, run_copy, ran):
    folder, _ = run_copy
    as_older_version(folder / "checkpoint/best")
    found = ran(*use(folder))
    lines = [line for line in found.stderr.splitlines() if "older version" in line]
    assert len(lines) == 1
    assert f"{folder}/checkpoint/best: written by an older version" in lines[0]


def test_a_finished_run_of_an_edited_configuration_is_not_shown_as_another(run_copy, refused):
    folder, command = run_copy
    edit(folder, seed=3)
    line = refused(1, *command, "--seed", "3")
    assert "seed is 11711 there and 3 here" in line
