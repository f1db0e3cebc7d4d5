"""Folders with the checksums of their files inside, written aside and put in place whole.

A checkpoint also holds the configuration of its run, so that no other run takes it for its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from minbert.errors import UserError
from minbert.json_files import read_json, write_json
from minbert.sums import SUMS, fault, sums
from multitask.config import PLACES, difference

CONFIG = "run_config.json"  # in a checkpoint; its config.json is the encoder's
MACHINE = ("device", "linear")  # settings that may differ between a checkpoint and its run


class CheckpointError(UserError):
    """A checkpoint that cannot be used."""


def publish(
    folder: Path,
    write: Callable[[Path], None],
    config: Mapping[str, object] | None = None,
) -> None:
    """Let `write` fill a temporary folder and put it in the place of `folder` once it is whole.

    `config`, as JSON, is that of the run that writes it.
    Whole: every file and its checksum are on the disk, not only with the operating system. Where
    that fails, as on a full disk, the temporary folder goes and the old one stays.
    """
    temporary, old = folder.with_name(folder.name + ".tmp"), folder.with_name(folder.name + ".old")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        write(temporary)
        if config is not None:
            write_json(temporary / CONFIG, config)
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


def of_run(folder: Path, config: Mapping[str, object]) -> bool:
    """Whether a checkpoint holds the configuration of its run; those of older versions do not.

    Files and folders are compared by their names: they may have been moved. Raises CheckpointError,
    with the first setting that differs, for a checkpoint of another run than that of `config`.
    """
    if not (folder / CONFIG).exists():
        return False
    stored = read_json(folder / CONFIG, CheckpointError)
    if found := difference(with_names(config), with_names(stored), ignored=MACHINE):
        raise CheckpointError(
            f"{folder}: expected a checkpoint of this run, found one of another configuration: "
            f"{found}"
        )
    return True


def with_names(config: Mapping[str, object]) -> dict[str, object]:
    """A configuration as JSON with the names of its files and folders without their paths."""
    names = {key: Path(str(config[key])).name for key in PLACES if config.get(key)}
    return {**config, **names}


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
