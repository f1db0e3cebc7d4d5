"""A configuration or metrics that were edited are refused, and the line names the file."""

import io
import sys

import pytest

from common.files import read_json, write_json

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")
USES = {
    "predict": lambda run, out: ("--mode", "predict", "--run", run),
    "export": lambda run, out: ("--mode", "export", "--run", run, "--output", out),
    "init": lambda run, out: (*SST, "--limit", "8", "--init", run, "--output", out),
    "compare": lambda run, out: ("--mode", "compare", "--runs", run, "--output", out),
    "ensemble": lambda run, out: ("--mode", "ensemble", "--runs", run, "--output", out),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_edited_configuration_is_refused(use, run_copy, error_line, run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a cat\ta dog\n")))
    folder, command = run_copy
    content = read_json(folder / "config.json")
    write_json(folder / "config.json", content | {"pooling": "max", "tasks": ["../../evil"]})
    line = f"{folder / 'config.json'}: changed since it was written; restore it"
    assert line in error_line(1, *use(folder, tmp_path / "out"))
    assert line in error_line(1, *command)
    result = run("--mode", "runs", "--root", folder.parent)
    assert (result.returncode, f"cannot be read: {line}" in result.stdout) == (1, True)


def test_edited_metrics_are_refused(run_copy, error_line, run, tmp_path):
    folder, command = run_copy
    content = read_json(folder / "metrics.json")
    content["dev"]["sst"]["accuracy"] += 0.25
    write_json(folder / "metrics.json", content)
    uses = [USES[name](folder, tmp_path / "out") for name in ("compare", "ensemble", "export")]
    for argv in (*uses, command):
        assert f"{folder / 'metrics.json'}: changed since it was written" in error_line(1, *argv)
    result = run("--mode", "runs", "--root", folder.parent)
    assert (result.returncode, "cannot be read: " in result.stdout) == (1, True)
