"""Bad data, encoders and folders, through the command line: one line, exit status 1."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")


@pytest.fixture
def out(tmp_path) -> Path:
    return tmp_path / "run"


# Data

Edit = Callable[[bytes], bytes]


def last_line(row: bytes) -> Edit:
    return lambda content: content + row


DAMAGE: dict[str, tuple[str, str, Edit, str]] = {
    "short row": ("sst", "ids-sst-train.csv", last_line(b"40\tx\tt\n"), "line 42: expected 4"),
    "not UTF-8": ("sst", "ids-sst-train.csv", last_line(b"40\tx\t\xff\t1\n"), "line 42: expected"),
    "empty": ("sst", "ids-sst-dev.csv", lambda b: b"", "expected a header line"),
}


@pytest.mark.parametrize(("task", "name", "edit", "expected"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_data_is_refused_with_file_and_line(task, name, edit, expected, data, out, refused):
    (data / name).write_bytes(edit((data / name).read_bytes()))
    command = ["--mode", "single", "--task", task, "--encoder", "tiny", "--data", data]
    line = refused(1, *command, "--output", out)
    assert str(data / name) in line
    assert expected in line


def test_files_of_tasks_that_are_not_trained_may_be_absent(data, out, run):
    for path in data.glob("[qs]*.csv"):
        path.unlink()
    assert run(*SST, "--data", data, "--output", out).returncode == 0


def test_blank_labels_are_left_out_and_counted(data, out, ran):
    path = data / "ids-sst-train.csv"
    path.write_bytes(path.read_bytes() + b"40\tx\tt\t\n41\ty\tt\t \n")
    found = ran(*SST, "--data", data, "--output", out)
    assert f"2 rows with a blank label skipped in {path}" in found.stdout
    assert "train 40" in found.stdout


def test_a_users_folder_called_sample_is_not_the_bundled_one(data, out, refused, monkeypatch):
    data.rename(data.with_name("sample"))
    (data.with_name("sample") / "ids-sst-dev.csv").unlink()
    monkeypatch.chdir(data.parent)
    assert "ids-sst-dev.csv" in refused(1, *SST, "--data", "./sample", "--output", out)


def test_after_a_fault_in_the_data_is_mended_the_same_command_works(data, small, out, refused, run):
    path = data / "ids-sst-train.csv"
    path.write_bytes(path.read_bytes() + b"40\tx\tt\t7\n")
    command = [*SST, "--data", data, "--output", out]
    refused(1, *command)
    path.write_bytes((small / path.name).read_bytes())
    assert run(*command).returncode == 0


# Encoders


@pytest.mark.parametrize("name", ["nope", "~no-such-user", "x" * 5000, "../nope"])
def test_names_of_no_encoder_are_refused(name, out, refused):
    assert "expected one of minilm" in refused(2, *SST, "--encoder", name, "--output", out)


def test_a_damaged_encoder_folder_is_refused_with_the_file(finished, tmp_path, refused):
    for name in ("config.json", "tokenizer.json"):
        folder = tmp_path / name
        shutil.copytree(finished[0] / "checkpoint" / "best", folder)
        (folder / name).write_bytes(b"{")
        line = refused(1, *SST, "--encoder", folder, "--output", tmp_path / "run")
        assert f"{folder}: damaged" in line
        (folder / "SHA256SUMS").unlink()
        line = refused(1, *SST, "--encoder", folder, "--output", tmp_path / "run")
        assert str(folder / name) in line, name


# Training that went wrong


def test_a_run_that_diverged_is_not_finished(small, out, refused):
    """Predictions that are no numbers must not end as a finished run."""
    wild = ["--lr", "1e6", "--head-lr", "1e6", "--clip", "1e6"]
    found = refused.run(*SST, "--data", small, *wild, "--output", out)
    assert found.returncode == 1
    assert not (out / "metrics.json").exists()


@pytest.mark.slow
def test_a_closed_pipe_gives_no_traceback(small, tmp_path):
    read, write = os.pipe()
    os.close(read)

    root = Path(__file__).parents[2]
    folders = ("--data", str(small), "--output", str(tmp_path / "r"))
    command = [sys.executable, "run.py", *SST, *folders]
    found = subprocess.run(command, cwd=root, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert "Traceback" not in found.stderr
