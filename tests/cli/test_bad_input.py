"""Bad data, encoders and folders, through the command line: one line, exit status 1."""

from __future__ import annotations

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
    "long row": ("sst", "ids-sst-dev.csv", last_line(b"40\tx\tt\t1\t\n"), "line 42: expected 4"),
    "test row": ("sst", "ids-sst-test-student.csv", last_line(b"40\tx\n"), "line 42: expected 3"),
    "class": ("sst", "ids-sst-train.csv", last_line(b"40\tx\tt\t5\n"), "line 42: sentiment: exp"),
    "half": ("qqp", "quora-train.csv", last_line(b"40\tx\ta\tb\t0.5\n"), "line 42: is_duplicate"),
    "score": ("sts", "sts-dev.csv", last_line(b"40\tx\ta\tb\t5.1\n"), "line 42: similarity: exp"),
    "nan": ("sts", "sts-train.csv", last_line(b"40\tx\ta\tb\tnan\n"), "found 'nan'"),
    "blank id": ("sts", "sts-dev.csv", last_line(b"40\t\ta\tb\t5\n"), "line 42: expected an id"),
    "same id": ("sst", "ids-sst-dev.csv", last_line(b"\tx\tt\t1\n\tX\tt\t1\n"), "line 43"),
    "not UTF-8": ("sst", "ids-sst-train.csv", last_line(b"40\tx\t\xff\t1\n"), "line 42: expected"),
    "UTF-16": ("sst", "ids-sst-train.csv", lambda b: b.decode().encode("utf-16"), "line 1"),
    "commas": ("sst", "ids-sst-train.csv", lambda b: b.replace(b"\t", b","), "line 1: expected a"),
    "no label": ("qqp", "quora-dev.csv", lambda b: b.replace(b"is_duplicate", b"x", 1), "line 1"),
    "empty": ("sst", "ids-sst-dev.csv", lambda b: b"", "expected a header line"),
    "header": ("sst", "ids-sst-dev.csv", lambda b: b.split(b"\n")[0], "only a header line"),
}


@pytest.mark.parametrize(("task", "name", "edit", "expected"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_data(task, name, edit, expected, data, out, refused):
    (data / name).write_bytes(edit((data / name).read_bytes()))
    command = ["--mode", "single", "--task", task, "--encoder", "tiny", "--data", data]
    line = refused(1, *command, "--output", out)
    assert str(data / name) in line
    assert expected in line


def test_missing_file_and_missing_folder(data, out, refused):
    (data / "ids-sst-dev.csv").unlink()
    assert "ids-sst-dev.csv" in refused(1, *SST, "--data", data, "--output", out)
    line = refused(1, *SST, "--data", data / "nope", "--output", out.with_name("other"))
    assert f"found no {data / 'nope'}" in line


def test_a_file_given_as_the_data_folder(data, out, refused):
    assert "ids-sst-dev.csv" in refused(
        1, *SST, "--data", data / "ids-sst-dev.csv", "--output", out
    )


def test_files_of_tasks_that_are_not_trained_may_be_absent(data, out, run):
    for path in data.glob("[qs]*.csv"):
        path.unlink()
    assert run(*SST, "--data", data, "--output", out).returncode == 0


def test_blank_labels_are_counted_aloud(data, out, run):
    path = data / "ids-sst-train.csv"
    path.write_bytes(path.read_bytes() + b"40\tx\tt\t\n41\ty\tt\t \n")
    found = run(*SST, "--data", data, "--output", out)
    assert found.returncode == 0
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


def test_after_a_wrong_encoder_the_right_one_works_in_the_same_folder(small, out, refused, run):
    refused(2, *SST, "--encoder", "nope", "--data", small, "--output", out)
    assert run(*SST, "--data", small, "--output", out).returncode == 0


# Encoders


def test_unknown_encoder(out, refused):
    line = refused(2, *SST, "--encoder", "nope", "--output", out)
    assert "unknown encoder 'nope': expected one of minilm" in line


def test_encoder_folder_without_config(tmp_path, out, refused):
    line = refused(1, *SST, "--encoder", tmp_path, "--output", out)
    assert f"{tmp_path}: expected an encoder's config.json" in line


@pytest.mark.parametrize("name", ["~nobody-of-this-name", "x" * 5000, "a\nb", "../nope"])
def test_strange_encoder_names(name, out, refused):
    refused(2, *SST, "--encoder", name, "--output", out)


def test_a_hub_that_cannot_be_reached(out, refused, monkeypatch):
    """Whatever the hub's client raises ends as one line that says what works offline."""
    import huggingface_hub

    class ConnectError(Exception):  # as httpx's: no OSError
        pass

    def fail(*args: object, **kwargs: object) -> None:
        raise ConnectError("name or service not known")

    monkeypatch.setattr(huggingface_hub, "model_info", fail)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    assert "owner/name" in refused(1, *SST, "--encoder", "owner/name", "--output", out)


def test_a_damaged_encoder_folder_is_told_by_the_file(finished, tmp_path, refused):
    for name in ("config.json", "tokenizer.json", "modules.json", "tokenizer_config.json"):
        folder = tmp_path / name
        shutil.copytree(finished[0] / "checkpoint" / "best", folder)
        (folder / name).write_bytes(b"{")
        line = refused(1, *SST, "--encoder", folder, "--output", tmp_path / "run")
        assert f"{folder}: damaged" in line
        (folder / "SHA256SUMS").unlink()
        line = refused(1, *SST, "--encoder", folder, "--output", tmp_path / "run")
        assert str(folder / name) in line, name


# Training that went wrong


def test_a_run_that_diverged_says_so(small, out, refused):
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
    command = [
        sys.executable,
        "run.py",
        *SST,
        "--data",
        str(small),
        "--output",
        str(tmp_path / "r"),
    ]
    found = subprocess.run(command, cwd=root, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert "Traceback" not in found.stderr
