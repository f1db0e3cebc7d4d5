"""Cells, the JSON files of results: reading, checking and writing.

`python -m reports.cells RUN FILE` writes that of a finished run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.entry_point import start
from common.errors import RunError, UserError
from common.json_files import read_sealed, write_sealed
from multitask.settings.config import RunConfig, default_values, difference
from multitask.storage.run_folder import RunFolder
from multitask.storage.stored_config import without_paths
from tasks.metrics import metric_error

REMEDY = "delete it and run its command again"


def cell(run: Path) -> dict[str, Any]:
    """Return configuration, environment and metrics of a run, with folders given by name only.

    Raise RunError if the run is not finished.
    """
    folder = RunFolder(run)
    metrics = folder.metrics()
    if metrics is None:
        raise RunError(f"{run}: expected a finished run with metrics.json, found none")
    return {"config": without_paths(folder.settings())} | metrics


def write_cell(file: Path, content: Mapping[str, Any]) -> None:
    """Write a cell with its checksum."""
    write_sealed(file, content)


def read_cell(file: Path) -> dict[str, Any]:
    """Read a file that `write_cell` wrote.

    Raise UserError if it was edited, lacks its checksum, or has figures that are not finite or out
    of the range of their metric.
    """
    content = read_sealed(file, UserError, REMEDY)
    figures = {k: v for k, v in content.items() if k not in ("config", "environment")}
    if wrong := metric_error(figures):
        raise UserError(f"{file}: {wrong}; {REMEDY}")
    return content


def check_config(
    file: Path, config: RunConfig, kept: Mapping[str, Any], ignored: tuple[str, ...]
) -> None:
    """Raise UserError if a cell was made with another configuration.

    Settings that the configuration does not use may differ; those that the cell lacks have their
    defaults.
    """
    ignored = (*ignored, *config.unused())
    mine, theirs = ({**default_values(), **one} for one in (without_paths(config), kept))
    if found := difference(mine, theirs, ignored=ignored):
        raise UserError(
            f"{file}: expected a cell of this configuration, found another: {found}; "
            "another --results keeps both"
        )


def run_of_cell(folder: Path, config: RunConfig) -> bool:
    """Return whether a folder holds the finished run of this configuration."""
    stored = RunFolder(folder).settings_if_any()
    if stored is None or not RunFolder(folder).metrics_file.exists():
        return False
    ignored = ("linear", *config.unused())
    return difference(without_paths(config), without_paths(stored), ignored=ignored) is None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reports.cells", description=__doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument(
        "file", type=Path, help="JSON file to write, such as results/STUDY/CELL.json"
    )
    args = parser.parse_args()
    args.file.parent.mkdir(parents=True, exist_ok=True)
    write_cell(args.file, cell(args.run))


if __name__ == "__main__":
    start("python -m reports.cells", main)
