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
def alone(file: Path) -> Iterator[None]:
    """Wait until no other process holds the lock FILE.lock, and hold it; it ends with the process.

    The empty file stays: were it deleted, two processes could hold locks of the same name.
    """
    import fcntl  # where there is none, on Windows, studies run a worker at a time

    with file.with_name(f"{file.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
