"""Control characters in a terminal, and a closed pipe: no code run, no traceback."""

import io
import os
import subprocess
import sys

import pytest
from run_files import ROOT

import cli
from common.entry_point import run_and_report
from reports.tables import text_table

SST = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1")
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def assert_escaped(text: str) -> None:
    """Check that the escapes are printed as text, with none of their characters."""
    assert r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e" in text
    assert all(letter == "\n" or letter.isprintable() for letter in text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_escapes_of_a_sentence_are_text_in_a_terminal_only(finished, run_ok, tmp_path, monkeypatch):
    texts, target = tmp_path / "texts.txt", tmp_path / "out.tsv"
    texts.write_text(f"red{ESCAPES}\nblue\n")
    command = ("--mode", "predict", "--run", finished[0], "--input", texts, "--tasks", "sst")
    piped = run_ok(*command)
    assert ESCAPES in piped.stdout
    run_ok(*command, "--output", target)
    assert target.read_text() == piped.stdout
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Terminal())
        assert cli.main([str(one) for one in command]) == 0
        screen = sys.stdout.getvalue()
    assert_escaped(screen.replace("\t", " "))


@pytest.mark.parametrize("place", [f"a{ESCAPES}", f"\n{ESCAPES}\n"])
def test_escapes_of_a_name_are_printed_as_text(capsys, place):
    def work() -> None:
        raise FileNotFoundError(2, "No such file or directory", place)

    assert run_and_report(work) == 1
    assert_escaped(capsys.readouterr().err)
    assert_escaped(text_table(["run", place], [[place, "1"]]))


@pytest.mark.slow
def test_a_closed_pipe_ends_a_run_without_a_traceback(small, tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "run.py", *SST, "--data", small, "--output", tmp_path / "run"]
    result = subprocess.run(command, cwd=ROOT, stdout=write, stderr=subprocess.PIPE, text=True)
    os.close(write)
    assert result.returncode == 141
    assert "Traceback" not in result.stderr
