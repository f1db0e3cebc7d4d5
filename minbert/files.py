"""Files that are never half there, and never written by two at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Write UTF-8, with line breaks as they are, under a temporary name, then rename."""
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text, "utf-8", newline="\n")
    os.replace(temporary, file)


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
    with file.with_name(f"{file.name}.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
