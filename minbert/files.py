"""Files that are never half there, and never written by two at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO


def write_whole(file: Path, text: str) -> None:
    """Write UTF-8, with line breaks as they are, under a temporary name, then rename.

    Processes may write the same file at a time, as those that share a study do: the last one wins.
    """
    with whole_file(file) as opened:
        opened.write(text)


@contextmanager
def whole_file(file: Path) -> Iterator[TextIO]:
    """A file of UTF-8 text to be written bit by bit, in place once all of it is there."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with removed_on_error(temporary):
        with temporary.open("w", encoding="utf-8", newline="") as opened:
            yield opened
        os.replace(temporary, file)


def remove(path: Path, ignore_errors: bool = False) -> None:
    """Delete a folder with all it holds, or a file, or a link but never what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def removed_on_error(file: Path) -> Iterator[None]:
    """Leave no half of a file behind; an error of the disk names it."""
    try:
        yield
    except BaseException as error:
        file.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            raise OSError(error.errno, error.strerror, str(file)) from error
        raise


@contextmanager
def alone(file: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock FILE.lock, which ends with the process; False if another holds it.

    With `wait` it is waited for. The empty file stays: were it deleted, two processes could hold
    locks of the same name. Where a system has no such locks (Windows), everybody is alone.
    """
    try:
        import fcntl
    except ImportError:
        yield True
        return
    with file.with_name(f"{file.name}.lock").open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
