"""Files are there whole or not at all, whoever else writes them."""

import subprocess
import sys

import pytest

from minbert.files import whole_file, write_whole

WRITER = """
import sys
from pathlib import Path
from minbert.files import write_whole
for _ in range(300):
    write_whole(Path(sys.argv[1]), sys.argv[2] * 1000)
"""


def test_two_processes_write_one_file(tmp_path):
    file = tmp_path / "table.md"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file), text]) for text in ("a", "b")
    ]
    assert [one.wait(timeout=600) for one in writers] == [0, 0]
    assert file.read_text() in ("a" * 1000, "b" * 1000)
    assert list(tmp_path.iterdir()) == [file]


def test_line_breaks_stay_as_they_are(tmp_path):
    write_whole(tmp_path / "text", "a\nb\r\nc\u2028d")
    assert (tmp_path / "text").read_bytes() == "a\nb\r\nc\u2028d".encode()


def test_an_error_leaves_what_was_there(tmp_path):
    file = tmp_path / "text"
    write_whole(file, "before")
    with pytest.raises(TypeError), whole_file(file) as opened:
        opened.writelines(["half", None])
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]
