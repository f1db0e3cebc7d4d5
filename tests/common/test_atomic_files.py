"""Files and folders are replaced completely or not at all, also by several processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from common import atomic_files
from common.atomic_files import (
    NEW,
    OLD,
    atomic_path,
    atomic_write_text,
    atomic_writer,
    check_regular,
    kind_of,
    recover,
    temporary_name,
)
from common.errors import UserError

WRITER = """
import sys
from pathlib import Path
from common.atomic_files import atomic_write_text
for _ in range(300):
    atomic_write_text(Path(sys.argv[1]), sys.argv[2] * 1000)
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
    atomic_write_text(tmp_path / "text", "a\nb\r\nc\u2028d")
    assert (tmp_path / "text").read_bytes() == "a\nb\r\nc\u2028d".encode()


def test_an_error_leaves_the_old_content(tmp_path):
    file = tmp_path / "text"
    atomic_write_text(file, "before")
    with pytest.raises(TypeError), atomic_writer(file) as opened:
        opened.writelines(["half", None])
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]


def old_folder(place):
    """A folder that is going to be replaced."""
    (place / "out").mkdir()
    (place / "out" / "file").write_text("old")
    return place / "out"


def replace(folder):
    with atomic_path(folder) as new:
        new.mkdir()
        (new / "file").write_text("new")


def renames_that_fail(monkeypatch, failing, error):
    """Let the renames of these numbers, from 0, raise an error."""
    rename, count = Path.rename, iter(range(100))

    def fails(self, target):
        if next(count) in failing:
            raise error
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(5, "Input/output error")], ids=str)
@pytest.mark.parametrize("point", range(2))
def test_an_error_in_any_rename_leaves_the_old_folder(tmp_path, monkeypatch, point, error):
    folder = old_folder(tmp_path)
    renames_that_fail(monkeypatch, {point}, error)
    with pytest.raises(type(error)):
        replace(folder)
    assert (folder / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]


def test_the_old_folder_is_kept_if_no_rename_can_be_undone(tmp_path, monkeypatch):
    folder = old_folder(tmp_path)
    renames_that_fail(monkeypatch, {1, 2}, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        replace(folder)
    (kept,) = tmp_path.iterdir()
    assert kind_of(kept) == OLD
    assert (kept / "file").read_text() == "old"


DIES = """
import os, sys
from pathlib import Path
from common.atomic_files import atomic_path
rename, count = Path.rename, iter(range(100))
def dies(self, target):
    if next(count) == int(sys.argv[2]):
        os._exit(9)
    return rename(self, target)
Path.rename = dies
with atomic_path(Path(sys.argv[1])) as new:
    new.mkdir()
    (new / "file").write_text("new")
"""


@pytest.mark.parametrize("point", range(2))
def test_a_process_killed_at_any_rename_leaves_the_old_folder(tmp_path, point):
    folder = old_folder(tmp_path)
    command = [sys.executable, "-c", DIES, str(folder), str(point)]
    assert subprocess.run(command, timeout=120, check=False).returncode == 9
    recover(folder)
    assert (folder / "file").read_text() == "old"
    assert list(tmp_path.iterdir()) == [folder]
    replace(folder)
    assert (folder / "file").read_text() == "new"


def test_a_folder_is_replaced_only_with_overwrite(tmp_path):
    folder = old_folder(tmp_path)
    with pytest.raises(OSError, match="out") as error, atomic_path(folder, False) as new:
        new.mkdir()
    assert error.value.filename == str(folder)
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
    assert (folder / "file").read_text() == "old"


@pytest.fixture
def dead():
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(timeout=120)
    return process.pid


def named(target, process):
    """A temporary name of another process."""
    mine = temporary_name(target, NEW)
    return mine.with_name(mine.name.replace(f".{os.getpid()}.", f".{process}."))


def test_temporary_files_of_dead_processes_are_removed(tmp_path, dead):
    target = tmp_path / "table.md"
    named(target, dead).write_text("half")
    stay = [
        named(target, os.getppid()),
        named(tmp_path / "other.md", dead),
        *(tmp_path / f"table.md{end}" for end in (".tmp", ".old", f".{dead}.tmp", "~")),
    ]
    for one in stay:
        one.write_text("mine")
    atomic_write_text(target, "text")
    assert sorted(tmp_path.iterdir()) == sorted([target, *stay])
    assert {one.read_text() for one in stay} == {"mine"}


def test_an_error_of_the_disk_names_the_target(tmp_path):
    with pytest.raises(OSError, match="No space") as error, atomic_writer(tmp_path / "text"):
        raise OSError(28, "No space left on device")
    assert error.value.filename == str(tmp_path / "text")
    with pytest.raises(OSError, match="No space") as error, atomic_path(tmp_path / "out") as new:
        raise OSError(28, "No space left on device", str(new / "inner" / "file"))
    assert error.value.filename == str(tmp_path / "out" / "inner" / "file")
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_not_regular_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket has to be short
    os.mkfifo("pipe")
    Path("link").symlink_to("pipe")
    Path("folder").mkdir()
    Path("file").write_text("")
    Path("link to file").symlink_to("file")
    kinds = {"pipe": "named pipe", "link": "named pipe", "folder": "folder", "socket": "socket"}
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        for name, kind in (kinds | {os.devnull: "device"}).items():
            with pytest.raises(UserError) as error:
                check_regular(Path(name))
            assert str(error.value) == f"{name}: expected a regular file, found a {kind}"
    for name in ("file", "link to file", "nowhere", "file/inside", "\0"):
        check_regular(Path(name))


def test_everything_is_on_disk_before_a_folder_takes_its_place(tmp_path, monkeypatch):
    target, flushed = tmp_path / "target", []

    def record(path):
        flushed.append(path)
        assert target.exists() == (path == target.parent)

    monkeypatch.setattr(atomic_files, "sync", record)
    with atomic_path(target) as new:
        (new / "part").mkdir(parents=True)
        (new / "part" / "file").write_text("text")
    assert {new, new / "part", new / "part" / "file"} == set(flushed[:-1])
    assert flushed[-1] == target.parent


def test_files_and_folders_are_flushed(tmp_path, without_flushing):
    (tmp_path / "file").write_text("text")
    opened = []
    sync = without_flushing  # the function that is replaced elsewhere
    with mock.patch.object(os, "fsync", opened.append):
        sync(tmp_path / "file")
        sync(tmp_path)
    assert len(opened) == 2
