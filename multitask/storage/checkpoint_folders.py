"""Folders that are written under a temporary name, with checksums, and then renamed.

A checkpoint also holds the configuration of its run, so that no other run can load it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from common.atomic_files import atomic_path, paths_in
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
    """Return the folder, or None without one; raise CheckpointError if it is damaged."""
    if not folder.exists():
        return None
    if found := integrity_error(folder):
        raise CheckpointError(found)
    return folder


def newest_first(folder: Path) -> list[Path]:
    """Return the checkpoints of a run's training, `step-N`, including damaged ones."""
    found = (path for path in paths_in(folder) if STEP.fullmatch(path.name))
    return sorted(found, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name[5:])


def seal(folder: Path) -> None:
    """Write the checksums of a folder's files."""
    (folder / SUMS).write_bytes(checksums(folder).encode())
