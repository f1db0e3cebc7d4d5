"""The folder of a run: what is kept, replaced or refused, and that its files are its own."""

from pathlib import Path

import pytest
from filelock import FileLock
from run_files import metrics

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Time and content of every file."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.name != "run.lock"
    }


def test_a_file_in_the_place_of_a_run_is_kept(small, tmp_path, error_line):
    mine = tmp_path / "run"
    mine.write_text("mine")
    for place in (mine, mine / "below"):
        line = error_line(1, *SST, "--data", small, "--output", place, "--overwrite")
        assert str(mine) in line
    assert mine.read_text() == "mine"


@pytest.mark.parametrize("flags", [(), ("--overwrite",), ("--resume",)])
def test_a_folder_of_other_files_is_refused_and_kept(flags, small, tmp_path, error_line):
    (tmp_path / "photos" / "2024").mkdir(parents=True)
    (tmp_path / "photos" / "thesis.tex").write_text("mine")
    before = tree(tmp_path)
    line = error_line(1, *SST, "--data", small, "--output", tmp_path / "photos", *flags)
    assert "the folder has other files, such as 2024" in line
    assert tree(tmp_path) == before
    assert sorted(one.name for one in (tmp_path / "photos").iterdir()) == ["2024", "thesis.tex"]


def test_the_default_folder_is_named_after_the_configuration(small, run_ok, cwd):
    for seed in ("1", "2", "2"):
        result = run_ok(*SST, "--data", small, "--seed", seed)
    assert "holds this run, already finished" in result.stdout
    assert sorted("seed1-" in path.name for path in Path("runs").iterdir()) == [False, True]


def test_a_finished_run_is_printed_and_left_unchanged(run_copy, run_ok, error_line):
    folder, command = run_copy
    before = tree(folder)
    result = run_ok(*command, "--resume")
    assert result.stderr == ""
    assert "finished" in result.stdout
    assert f"{metrics(folder)['dev']['overall']:.4f}" in result.stdout
    assert f"--init {folder} " in error_line(1, *command, "--resume", "--epochs", "3")
    assert tree(folder) == before


def test_modes_that_use_an_unfinished_run_say_how_far_it_is(interrupted, finished, run_ok, cwd):
    folder, _ = interrupted
    Path("a.txt").write_text("a cat\n")
    predict = ("--mode", "predict", "--input", "a.txt", "--run")
    modes = (
        (*predict, folder),
        ("--mode", "encode", "--input", "a.txt", "--output", "a.npy", "--run", folder),
        ("--mode", "export", "--output", "exported", "--run", folder),
    )
    line = f"run.py: {folder}: this run has not finished: "
    line += "its best epoch so far is used; --resume continues it"
    for argv in modes:
        assert run_ok(*argv).stderr.splitlines().count(line) == 1
    for other in (finished[0], "exported"):
        assert "--resume" not in run_ok(*predict, other).stderr


@pytest.mark.parametrize("changed", [("--data", "nowhere"), ("--encoder", "nowhere/at-all")])
def test_overwrite_with_a_wrong_path_keeps_the_run(changed, run_copy, run):
    folder, command = run_copy
    before = tree(folder)
    result = run(*command, *changed, "--overwrite")
    assert result.returncode in (1, 2)
    assert changed[1] in result.stderr.splitlines()[-1]
    after = tree(folder)
    assert {name: after[name] for name in before if "lock" not in name} == {
        name: content for name, content in before.items() if "lock" not in name
    }


def test_the_folder_of_a_running_process_is_left_unchanged(interrupted, finished, error_line):
    folder, command = interrupted
    before = tree(folder)
    with FileLock(folder / "run.lock"):
        for flags in ((), ("--resume",), ("--overwrite",)):
            line = error_line(1, *command, *flags)
            assert f"{folder}: another process uses this folder" in line
        ensemble = ("--mode", "ensemble", "--runs", finished[0], "--output", folder, "--overwrite")
        assert "uses this folder" in error_line(1, *ensemble)
    assert before.items() <= tree(folder).items()


def test_init_needs_a_complete_run_and_its_encoder(tmp_path, run_copy, small, error_line, run_ok):
    start = (*SST, "--data", small, "--output", tmp_path / "run", "--init")
    line = f"{tmp_path}: there is no run in this folder"
    assert line in error_line(1, *start, tmp_path)
    folder, _ = run_copy
    merged = tmp_path / "merged"
    run_ok("--mode", "ensemble", "--runs", folder, "--output", merged)
    none = "there is no run"
    for one, found, encoded in (
        (folder / "best", none, none),
        (merged, "the run has no weights", "an ensemble has no encoder"),
    ):
        assert f"{one}: {found}" in error_line(1, *start, one)
        encode = ("--mode", "encode", "--input", __file__, "--output", tmp_path / "a.npy")
        assert f"{one}: {encoded}" in error_line(1, *encode, "--run", one)
    line = error_line(2, *start, folder, "--encoder", "minilm")
    assert "--encoder: expected tiny, as in the run of init, found minilm" in line
    (folder / "best" / "heads.safetensors").unlink()
    assert str(folder) in error_line(1, *start, folder)
