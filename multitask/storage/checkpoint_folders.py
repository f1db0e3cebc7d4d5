"""Folders that are written under a temporary name, with checksums, and then renamed.

A checkpoint also holds the configuration of its run, so that no other run can load it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from common.atomic_files import NEW, OLD, atomic_path, kind_of, paths_in, target_name
from common.errors import UserError
from common.json_files import SUMS, checksums, integrity_error, write_json

BEST = "best"  # folder of the best epoch's weights, in that of the checkpoints
STEP = re.compile(r"step-\d+")
CONFIG = "run_config.json"  # in a checkpoint; its config.json is the encoder's


class CheckpointError(UserError):
    """A checkpoint that cannot be used."""


def publish(
    folder: Path, write: Callable[[Path], None], config: Mapping[str, object] | None = None
) -> None:
    """Let `write` fill a temporary folder, and replace `folder` by it when it is complete.

    `config`, as JSON, is that of the run that writes the folder. Complete means that every file and
    its checksum are on the disk, not only in the cache of the operating system. If this fails, for
    example because the disk is full, the temporary folder is removed and the old one stays.
    """
    with atomic_path(folder) as new:
        new.mkdir(parents=True)
        write(new)
        if config is not None:
            write_json(new / CONFIG, config)
        seal(new)


def published(folder: Path) -> Path | None:
    """Return the folder, or the one it was replacing when the process ended, or None.

    Raise CheckpointError if it is damaged.
    """
    for candidate in (folder, *(p for p in paths_in(folder.parent) if replaced(p) == folder.name)):
        if candidate.exists():
            if found := integrity_error(candidate):
                raise CheckpointError(found)
            return candidate
    return None


def newest_first(folder: Path) -> list[Path]:
    """Return the checkpoints of a run's training, `step-N`, including damaged ones.

    A checkpoint that was being replaced when the process ended has its temporary name.
    """
    paths = paths_in(folder)
    steps = {replaced(path): path for path in paths} | {path.name: path for path in paths}
    found = (path for name, path in steps.items() if name and STEP.fullmatch(name))
    return sorted(found, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    return int((replaced(checkpoint) or checkpoint.name)[5:])


def leftovers(folder: Path) -> list[Path]:
    """Return incomplete or replaced folders of killed processes; no process may be writing now."""
    return [path for path in paths_in(folder) if is_leftover(path)]


def is_leftover(path: Path) -> bool:
    if name := replaced(path):
        return path.with_name(name).exists()
    return kind_of(path) == NEW


def replaced(path: Path) -> str | None:
    """Return the name of the folder that was being replaced; None for any other path."""
    return target_name(path) if kind_of(path) == OLD else None


def seal(folder: Path) -> None:
    """Write the checksums of a folder's files."""
    (folder / SUMS).write_bytes(checksums(folder).encode())
