"""Atomic writing of files and folders, and locks between processes."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from common.errors import UserError

NEW, OLD = "new", "old"  # a path that is being written, and a folder that is being replaced
TEMPORARY = re.compile(rf"\.(.+)\.([0-9]+)\.minbert-({NEW}|{OLD})", re.DOTALL)
KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}


def temporary_name(target: Path, kind: str) -> Path:
    """Return a hidden path next to `target` that no other process uses."""
    return target.with_name(f".{target.name}.{os.getpid()}.minbert-{kind}")


def kind_of(path: Path) -> str | None:
    """Return `new` or `old` for a temporary name, None for other names."""
    match = TEMPORARY.fullmatch(path.name)
    return match[3] if match else None


def is_alive(process: int) -> bool:
    """Return whether another process of this machine has this id."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to another user
        return True
    return True


def atomic_write_text(file: Path, text: str) -> None:
    """Write UTF-8 text, with line breaks unchanged, to a temporary file, then rename it.

    Several processes may write the same file, for example in a shared study: the last one wins.
    """
    with atomic_writer(file) as opened:
        opened.write(text)


@contextmanager
def atomic_writer(file: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file for writing; it is put in place only when it is complete."""
    with atomic_path(file) as new, new.open("x", encoding="utf-8", newline="") as opened:
        yield opened


@contextmanager
def atomic_path(target: Path, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary path for a file or folder, which replaces `target` at the end.

    On an error the temporary path is removed and `target` stays unchanged; an OSError names
    `target`. Remains of killed processes are cleared first. Without `overwrite`, a folder at
    `target` that is not empty is an error.
    """
    recover(target)
    new = temporary_name(target, NEW)
    try:
        yield new
        if new.is_dir():
            put_in_place(new, target, overwrite)
        else:
            os.replace(new, target)
    except BaseException as error:
        remove(new, ignore_errors=True)
        recover(target)
        if isinstance(error, OSError) and error.errno is not None:
            place = str(new if error.filename is None else error.filename)
            if place.startswith(str(new)):
                place = str(target) + place.removeprefix(str(new))
                raise OSError(error.errno, error.strerror, place) from error
        raise


def put_in_place(new: Path, target: Path, overwrite: bool) -> None:
    """Flush a folder to disk and rename it to `target`.

    With `overwrite`, a folder there is renamed first, and deleted last. `recover` takes it back if
    the process ends in between.
    """
    for path in (new, *new.rglob("*")):
        sync(path)
    old = temporary_name(target, OLD)
    if overwrite and target.exists():
        target.rename(old)
    new.rename(target)
    sync(target.parent)
    remove(old, ignore_errors=True)


def recover(target: Path) -> None:
    """Clear the temporary paths of `target` that ended processes left.

    A folder that was being replaced is restored if `target` does not exist; the rest is removed.
    """
    for path in paths_in(target.parent):
        match = TEMPORARY.fullmatch(path.name)
        if match is None or match[1] != target.name or is_alive(int(match[2])):
            continue
        with suppress(OSError):  # cleared by another process, or no permission
            if match[3] == OLD and not target.exists():
                path.rename(target)
            else:
                remove(path)


def remove(path: Path, ignore_errors: bool = False) -> None:
    """Delete a folder with its content, a file, or a link without its target."""
    with suppress(*([OSError] if ignore_errors else [])):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=ignore_errors)
        else:
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_regular(file: Path, error_class: type[UserError] = UserError) -> None:
    """Raise `error_class`, before opening, for an existing path that is not a regular file.

    Opening a named pipe or a device could block forever.
    """
    try:
        mode = stat.S_IFMT(file.stat().st_mode)
    except (OSError, ValueError):
        return  # opening the file will report the error
    if mode != stat.S_IFREG:
        found = KINDS.get(mode, "a device")
        raise error_class(f"{file}: expected a regular file, found {found}")


@contextmanager
def file_lock(file: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock FILE.lock and yield True; without `wait`, yield False if another holds it.

    The lock ends with the process at the latest. The empty file stays: if it were deleted, two
    processes could hold locks of the same name.
    """
    lock = file.with_name(f"{file.name}.lock")
    check_regular(lock)
    with lock.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def paths_in(folder: Path) -> list[Path]:
    """Return the sorted paths in a folder; empty if it does not exist."""
    return sorted(folder.iterdir()) if folder.is_dir() else []
