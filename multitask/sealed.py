"""Folders with the checksums of their files inside, written aside and put in place whole."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from minbert.errors import UserError
from minbert.sums import SUMS, fault, sums


class CheckpointError(UserError):
    """A checkpoint that cannot be used."""


def publish(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a temporary folder and put it in the place of `folder` once it is whole.

    Whole: every file and its checksum are on the disk, not only with the operating system. Where
    that fails, as on a full disk, the temporary folder goes and the old one stays.
    """
    temporary, old = folder.with_name(folder.name + ".tmp"), folder.with_name(folder.name + ".old")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        seal(temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    temporary.rename(folder)
    settle(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def published(folder: Path) -> Path | None:
    """The folder, or the one it was replacing when the process ended; None without either.

    Raises CheckpointError where it is damaged.
    """
    for candidate in (folder, folder.with_name(folder.name + ".old")):
        if candidate.exists():
            if found := fault(candidate):
                raise CheckpointError(found)
            return candidate
    return None


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints of a run's training, `step-N`, damaged ones too."""
    return sorted(
        (path for path in folder.glob("step-*") if path.name[5:].isdecimal()),
        key=step_of,
        reverse=True,
    )


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name[5:])


def seal(folder: Path) -> None:
    """Write the checksums of a folder's files, and bring all of it to the disk."""
    (folder / SUMS).write_bytes(sums(folder).encode())
    for path in (folder, *folder.rglob("*")):
        settle(path)


def settle(path: Path) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    if os.name == "nt":  # it has no such call for files that were only read
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
