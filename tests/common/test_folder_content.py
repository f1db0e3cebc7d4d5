"""Folders for output belong to one process, and keep what is not theirs."""

import pytest

from common.errors import RunError, SettingsError
from common.folder_content import folder_of_runs
from multitask.control import RunControl
from multitask.settings.config import RunConfig
from studies.pareto import sweep

TASKS = {"tasks": ("sst", "sts"), "encoder": "tiny"}


def test_a_folder_is_used_by_one_process(tmp_path):
    folder = tmp_path / "runs"
    with folder_of_runs(folder, "a sweep", ("kept",)):
        (folder / "kept").write_text("")
        with (
            pytest.raises(RunError, match="expected no running process in it, found one"),
            folder_of_runs(folder, "a sweep", ("kept",)),
        ):
            pass
    with folder_of_runs(folder, "a sweep", ("kept",)):
        pass
    with (
        pytest.raises(RunError, match="or one of folds, found kept"),
        folder_of_runs(folder, "folds", ()),
    ):
        pass
    with folder_of_runs(tmp_path / "empty", "folds", ()):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_sweep_refuses_what_it_sets(tmp_path):
    settings = {"mode": "pareto", "combiner": "linear", **TASKS}
    for key, value in (("preference", (0.9, 0.1)), ("loss_sizes", (1.0, 2.0))):
        config = RunConfig(**settings, **{key: value})
        with pytest.raises(SettingsError, match=f"{key}: expected none, because a sweep sets it"):
            sweep(config, 2, tmp_path / "front")
    assert not (tmp_path / "front").exists()


def test_overwriting_leaves_the_files_of_a_running_process(tmp_path):
    replace = RunControl(overwrite=True)
    front = RunConfig.from_flat({"mode": "pareto", "combiner": "epo", **TASKS})
    for name, content, call in (
        ("rays.json", "ray-1", lambda folder: sweep(front, 2, folder, replace)),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("{}")
        (folder / content).mkdir()
        with (
            folder_of_runs(folder, "", (name, content)),
            pytest.raises(RunError, match="expected no running process in it"),
        ):
            call(folder)
        assert {path.name for path in folder.glob("[!.]*")} == {name, content}
