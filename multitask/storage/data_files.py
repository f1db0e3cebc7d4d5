"""Checksums of the files that a run reads: a finished run is of these files only."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from common.errors import OtherRunError
from common.json_files import digest, write_json
from minbert.sources import encoder_checksum
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig, path_settings
from multitask.storage.run_folder import DATA, RunFolder
from multitask.storage.stored_config import as_paths
from tasks import build_task, data_folder

ENCODER = "encoder"  # name of the checksum of a local encoder's folder; other names have a space


def files(config: RunConfig) -> dict[str, Path]:
    """Return the files of examples and texts that a run reads, `TASK SPLIT` or `SETTING NUMBER`."""
    folder, flat = data_folder(config.data), config.flat()
    found = {
        f"{name} {split}": Path(task.source.where(folder, split))
        for name, task in plain_tasks(config).items()
        for split in task.source.splits
    }
    if config.pretrains and not config.objective.of_classes:  # it selects the epoch
        found["sts dev"] = Path(build_task("sts").source.where(folder, "dev"))
    for key in path_settings():
        paths = map(Path, as_paths(flat.get(key)))
        found |= {f"{key} {n}": path for n, path in enumerate(paths, 1)}
    return found


def file_digests(*configs: RunConfig) -> dict[str, str]:
    """Return the SHA-256 of each existing path that the configurations read, named as in `files`.

    Of two paths with one name the last counts.
    """
    paths = {key: path for one in configs for key, path in files(one).items()}
    found = {key: digest_of(path) for key, path in paths.items()}
    return {key: value for key, value in found.items() if value is not None}


def digest_of(path: Path) -> str | None:
    """Return the SHA-256 of a file; None without any."""
    return digest(path) if path.is_file() else None


def encoder_digest(config: RunConfig) -> dict[str, str]:
    """Return the checksum of the folder of a local encoder, by the name of the setting."""
    found = encoder_checksum(config.encoder) if config.init is None else None
    return {} if found is None else {ENCODER: found}


def write_digests(folder: RunFolder, config: RunConfig) -> None:
    """Write the checksums of a run's files and of its encoder to its folder."""
    write_json(folder.path / DATA, file_digests(config) | encoder_digest(config))


def has_changed(folders: Iterable[RunFolder], task: str, split: str, path: Path) -> bool:
    """Return whether the file of a split has another checksum than when one of the runs began."""
    key, found = f"{task} {split}", digest_of(path)
    stored = {folder.data_checksums().get(key, found) for folder in folders}
    return found is not None and not stored <= {found}


def check_digests(folder: RunFolder, config: RunConfig) -> None:
    """Raise OtherRunError if a file changed after the run began; missing files are no error."""
    stored = folder.data_checksums()
    found = file_digests(config) | encoder_digest(config) if stored else {}
    for key, value in found.items():
        if stored.get(key, value) != value:
            what = "folder of the encoder" if key == ENCODER else f"file of {key}"
            raise OtherRunError(
                f"{folder.path}: expected the files with which this run began, found another "
                f"{what}; choose another --output, or add --overwrite"
            )
