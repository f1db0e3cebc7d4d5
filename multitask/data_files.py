"""Checksums of the files that a run reads: a finished run is of these files only."""

from __future__ import annotations

from pathlib import Path

from common.errors import RunError
from common.json_files import digest, read_json, write_json
from multitask.assembly import plain_tasks
from multitask.config import RunConfig, path_settings
from multitask.run_folder import DATA, RunFolder
from multitask.stored_config import as_paths
from tasks import data_folder


def task_files(config: RunConfig) -> dict[str, Path]:
    """Return the existing file of each task and split, by `TASK SPLIT`."""
    folder = data_folder(config.data)
    files = {
        f"{name} {split}": Path(task.source.where(folder, split))
        for name, task in plain_tasks(config).items()
        for split in task.source.splits
    }
    return {key: file for key, file in files.items() if file.is_file()}


def file_digests(config: RunConfig) -> dict[str, str]:
    """Return the SHA-256 of each file of examples or texts, by `TASK SPLIT` or `SETTING NUMBER`."""
    files, flat = task_files(config), config.flat()
    for key in path_settings():
        paths = map(Path, as_paths(flat.get(key)))
        files |= {f"{key} {n}": path for n, path in enumerate(paths, 1) if path.is_file()}
    return {key: digest(file) for key, file in files.items()}


def write_digests(folder: RunFolder, config: RunConfig) -> None:
    """Write the checksums of a run's files to its folder."""
    write_json(folder.path / DATA, file_digests(config))


def check_digests(folder: RunFolder, config: RunConfig) -> None:
    """Raise RunError if a file was changed after the run; missing files are not an error."""
    file = folder.path / DATA
    if not file.exists():  # of an older version
        return
    stored, found = read_json(file, RunError), file_digests(config)
    for key, value in found.items():
        if stored.get(key, value) != value:
            raise RunError(
                f"{folder.path}: expected the data that this run was trained on, found another "
                f"file of {key}; choose another --output, or --overwrite it"
            )
