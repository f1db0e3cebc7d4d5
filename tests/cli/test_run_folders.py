"""The folder of a run through the command line: what may be there, what is kept or replaced."""

import json
from pathlib import Path

import pytest

from multitask.checkpoint_folders import newest_first

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")


@pytest.fixture
def out(tmp_path) -> Path:
    return tmp_path / "run"


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of every file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


# Output folders


def test_a_file_in_the_place_of_the_run_folder(tmp_path, refused):
    file = tmp_path / "file"
    file.write_text("mine")
    assert str(file) in refused(1, *SST, "--overwrite", "--output", file)
    assert str(file) in refused(1, *SST, "--output", file / "below")
    assert file.read_text() == "mine"


def test_files_and_folders_in_the_place_of_those_of_the_run(out, small, refused):
    out.mkdir()
    (out / "checkpoint").write_text("mine")
    assert str(out) in refused(1, *SST, "--data", small, "--output", out)
    other = out.with_name("other")
    (other / "metrics.json").mkdir(parents=True)
    assert str(other) in refused(1, *SST, "--data", small, "--output", other)


def test_a_tilde_that_the_shell_kept(small, tmp_path, run, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(*SST, "--data", small, "--output", "~/run").returncode == 0
    assert (tmp_path / "run" / "metrics.json").exists()
    assert not (tmp_path / "~").exists()


# Runs that are already there


def test_a_finished_run_is_shown_and_left_unchanged(run_copy, ran):
    folder, command = run_copy
    before = tree(folder)
    for flags in ([], ["--resume"]):
        found = ran(*command, *flags)
        assert found.stderr == ""
        assert "finished" in found.stdout
        metrics = json.loads((folder / "metrics.json").read_text())
        assert f"{metrics['dev']['overall']:.4f}" in found.stdout
        assert tree(folder) == before


@pytest.mark.parametrize(
    ("flags", "key"), [(["--epochs", "3"], "epochs"), (["--sts-head", "cosine"], "task_options")]
)
def test_another_configuration_is_refused_by_the_key(flags, key, run_copy, refused):
    folder, command = run_copy
    before = tree(folder)
    line = refused(1, *command, *flags)
    assert str(folder) in line
    assert key in line
    assert tree(folder) == before


def test_an_unfinished_run_needs_resume_or_overwrite(interrupted, refused, run):
    folder, command = interrupted
    before = tree(folder)
    line = refused(1, *command)
    assert "--resume" in line
    assert "--overwrite" in line
    assert tree(folder) == before
    assert run(*command, "--resume").returncode == 0
    assert (folder / "metrics.json").exists()


def test_overwrite_follows_no_link(tmp_path, small, run_copy, run):
    folder, command = run_copy
    (folder / "checkpoint").rename(tmp_path / "elsewhere")
    (folder / "checkpoint").symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path / "elsewhere")
    assert run(*command, "--overwrite").returncode == 0
    assert tree(tmp_path / "elsewhere") == before


def test_damaged_json_of_a_run(run_copy, refused):
    folder, command = run_copy
    for name in ("metrics.json", "config.json"):
        (folder / name).write_bytes(b"{")
        assert str(folder / name) in refused(1, *command)


def test_damaged_checkpoints_and_best_weights_are_refused(interrupted, refused):
    folder, command = interrupted
    (folder / "checkpoint" / "best" / "heads.safetensors").unlink()
    assert str(folder / "checkpoint" / "best") in refused(1, *command, "--resume")
    (newest,) = newest_first(folder / "checkpoint")
    (newest / "state.json").write_bytes(b"{")
    line = refused(1, *command, "--resume")
    assert "expected an intact checkpoint, found 1 damaged; --overwrite starts again" in line


# --init


def test_init_of_a_folder_that_is_no_run_or_lacks_a_file(tmp_path, run_copy, out, small, refused):
    start = (*SST, "--data", small, "--output", out, "--init")
    for name in (tmp_path, tmp_path / "nope"):
        assert f"{name}: expected a run with a config.json" in refused(1, *start, name)
    folder, _ = run_copy
    line = refused(2, *start, folder, "--encoder", "minilm")
    assert "--encoder: expected tiny, the encoder of init, found minilm" in line
    (folder / "checkpoint" / "best" / "heads.safetensors").unlink()
    assert str(folder) in refused(1, *start, folder)
