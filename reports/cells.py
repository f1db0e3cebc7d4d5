"""Cells, the JSON files of results: reading and checking."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import read_json
from multitask.config_tasks import without_paths
from multitask.run_folder import different_key
from multitask.runs import Run
from multitask.settings.config import RunConfig


def read_cell(file: Path) -> dict[str, Any]:
    """Read a cell; raise UserError for a file that is not a JSON object."""
    return read_json(file, UserError)


def check_config(
    file: Path, config: RunConfig, kept: Mapping[str, Any], ignored: tuple[str, ...]
) -> None:
    """Raise UserError if a cell was made with another configuration."""
    mine = {key: one for key, one in without_paths(config).items() if key not in ignored}
    theirs = {key: one for key, one in kept.items() if key not in ignored}
    if key := different_key(mine, theirs):
        line = f"{key} is {theirs.get(key)!r:.80} there and {mine.get(key)!r:.80} here"
        raise UserError(f"{file}: a cell of another configuration: {line}; use another --results")


def run_of_cell(folder: Path, config: RunConfig) -> bool:
    """Return whether a folder holds the finished run of this configuration."""
    stored = Run(folder).read("config.json")
    if not stored or not (folder / "metrics.json").exists():
        return False
    return without_paths(config) == without_paths(stored)
