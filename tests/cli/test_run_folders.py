"""The folder of a run through the command line: what may be there, what is kept or replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from multitask.atomic_dirs import newest_first

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


@pytest.mark.parametrize("flags", [(), ("--overwrite",), ("--resume",)])
def test_a_file_in_the_place_of_the_run_folder(flags, tmp_path, refused):
    file = tmp_path / "file"
    file.write_text("mine")
    assert str(file) in refused(1, *SST, *flags, "--output", file)
    assert str(file) in refused(1, *SST, *flags, "--output", file / "below")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", ["checkpoint", "tensorboard", "predictions"])
def test_a_file_in_the_place_of_a_folder_of_the_run(name, out, small, refused):
    out.mkdir()
    (out / name).write_text("mine")
    assert str(out) in refused(1, *SST, "--data", small, "--output", out)


@pytest.mark.parametrize("name", ["config.json", "metrics.json"])
def test_a_folder_in_the_place_of_a_file_of_the_run(name, out, small, refused):
    (out / name).mkdir(parents=True)
    assert str(out) in refused(1, *SST, "--data", small, "--output", out)


def test_a_name_that_is_too_long(tmp_path, refused):
    refused(1, *SST, "--output", tmp_path / ("x" * 300))


def test_a_tilde_the_shell_left_alone(small, tmp_path, run, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run(*SST, "--data", small, "--output", "~/run").returncode == 0
    assert (tmp_path / "run" / "metrics.json").exists()
    assert not (tmp_path / "~").exists()


# Runs that are already there


def test_a_finished_run_is_shown_and_left_alone(run_copy, run):
    folder, command = run_copy
    before = tree(folder)
    for flags in ([], ["--resume"]):
        found = run(*command, *flags)
        assert found.returncode == 0
        assert found.stderr == ""
        assert "finished" in found.stdout
        metrics = json.loads((folder / "metrics.json").read_text())
        assert f"{metrics['dev']['overall']:.4f}" in found.stdout
        assert tree(folder) == before


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (["--epochs", "3"], "epochs"),
        (["--seed", "1"], "seed"),
        (["--sts-head", "cosine"], "task_options"),
        (["--batch-size", "8"], "batch_size"),
    ],
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


def test_an_unfinished_run_is_not_resumed_with_another_configuration(interrupted, refused):
    folder, command = interrupted
    before = tree(folder)
    assert "epochs is 2 there and 5 here" in refused(1, *command, "--epochs", "5", "--resume")
    assert tree(folder) == before


def test_overwrite_removes_the_runs_own_files_only(run_copy, run):
    folder, command = run_copy
    mine = [folder / "notes.txt", folder / "plots" / "a.png"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    old = folder / "checkpoint" / "old.safetensors"
    old.write_text("of a run before")
    assert run(*command, "--overwrite", "--seed", "2").returncode == 0
    assert json.loads((folder / "config.json").read_text())["seed"] == 2
    assert [path.read_text() for path in mine] == ["mine"] * 2
    assert not old.exists()


def test_overwrite_leaves_a_folder_alone_that_holds_no_run(tmp_path, small, run):
    mine = tmp_path / "mine"
    (mine / "checkpoint").mkdir(parents=True)
    (mine / "checkpoint" / "precious").write_text("mine")
    run(*SST, "--data", small, "--overwrite", "--output", mine)
    assert (mine / "checkpoint" / "precious").read_text() == "mine"


def test_overwrite_follows_no_link(tmp_path, small, run_copy, run):
    folder, command = run_copy
    (folder / "checkpoint").rename(tmp_path / "elsewhere")
    (folder / "checkpoint").symlink_to(tmp_path / "elsewhere")
    before = tree(tmp_path / "elsewhere")
    assert run(*command, "--overwrite").returncode == 0
    assert tree(tmp_path / "elsewhere") == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
@pytest.mark.parametrize("name", ["config.json", "metrics.json"])
def test_damaged_json_of_a_run(name, content, run_copy, refused):
    folder, command = run_copy
    (folder / name).write_bytes(content)
    assert str(folder / name) in refused(1, *command)


@pytest.mark.parametrize(
    "damage", [lambda p: p.write_bytes(b"{"), Path.unlink], ids=["bad", "gone"]
)
@pytest.mark.parametrize("name", ["state.json", "state.safetensors", "SHA256SUMS"])
def test_damaged_checkpoint(name, damage, interrupted, refused):
    folder, command = interrupted
    (newest,) = newest_first(folder / "checkpoint")
    damage(newest / name)
    line = refused(1, *command, "--resume")
    assert "expected an intact checkpoint, found 1 damaged; --overwrite starts again" in line


@pytest.mark.parametrize(
    "damage", [lambda p: p.write_bytes(b"{"), Path.unlink], ids=["bad", "gone"]
)
@pytest.mark.parametrize("name", ["heads.safetensors", "config.json", "SHA256SUMS"])
def test_damaged_best_weights(name, damage, interrupted, refused):
    folder, command = interrupted
    damage(folder / "checkpoint" / "best" / name)
    assert str(folder / "checkpoint" / "best") in refused(1, *command, "--resume")


# --init


def test_init_of_a_folder_that_is_no_run(tmp_path, out, refused):
    for name in (tmp_path, tmp_path / "nope"):
        line = refused(1, *SST, "--init", name, "--output", out.with_name(f"run{len(str(name))}"))
        assert f"{name}: expected a run with a config.json" in line


@pytest.mark.parametrize("name", ["heads.safetensors", "model.safetensors", "config.json"])
def test_init_of_a_run_with_a_file_gone(name, run_copy, out, small, refused):
    folder, _ = run_copy
    (folder / "checkpoint" / "best" / name).unlink()
    line = refused(1, *SST, "--data", small, "--init", folder, "--output", out)
    assert str(folder) in line


def test_a_run_cannot_start_from_itself_and_overwrite_itself(run_copy, run):
    folder, _ = run_copy
    before = tree(folder)
    found = run(*SST, "--init", folder, "--output", folder, "--overwrite")
    assert found.returncode in (1, 2)
    assert tree(folder) == before


def test_init_and_another_encoder_contradict_each_other(run_copy, out, small, run):
    """--init brings its own encoder; naming another one as well must not be passed over."""
    folder, _ = run_copy
    command = ["--mode", "single", "--task", "sst", "--data", small, "--encoder", "minilm"]
    assert run(*command, "--init", folder, "--output", out).returncode in (1, 2)
