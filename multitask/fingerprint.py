"""What a run reads: files of examples, its encoder, and the runs that it begins or learns from."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from common.errors import RunError, SettingsError
from common.files import digest
from minbert.sources import encoder_checksum
from multitask.config_tasks import plain_tasks
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks import build_task, data_folder

ENCODER = "encoder"  # the key of a local encoder's folder; other keys have a space


def files(config: RunConfig) -> dict[str, Path]:
    """Return the files of examples and texts that a run reads, by `TASK SPLIT` or `text`."""
    folder = data_folder(config.data)
    found = {
        f"{name} {split}": Path(task.source.where(folder, split))
        for name, task in plain_tasks(config).items()
        for split in task.source.splits
    }
    if config.pretrains and not config.pretraining_objective.of_classes:  # it selects the epoch
        found["sts dev"] = Path(build_task("sts").source.where(folder, "dev"))
    if config.text_file is not None:
        found["text"] = Path(config.text_file)
    return found


def file_digests(*configs: RunConfig) -> dict[str, str]:
    """Return the SHA-256 of each file that the configurations read and that is there."""
    paths = {key: path for one in configs for key, path in files(one).items()}
    return {key: digest(path) for key, path in paths.items() if path.is_file()}


def source_runs(config: RunConfig) -> dict[str, Path]:
    """Return the folders of `init` and of the teachers by flag."""
    runs = [("--init", config.init)] if config.init else []
    runs += [("--teacher", one) for one in config.teacher]
    return {f"{key} {run}": Path(run) for key, run in runs}


def fingerprint(config: RunConfig) -> dict[str, str]:
    """Return the checksums of all that a run reads and that is there, by name.

    Those are its files, a user's files of methods, a local encoder, and the weights of the runs
    that it begins from or learns from. A finished run does not need them; they may be gone.
    """
    found = file_digests(config)
    found |= {f"--use {name}": digest(file) for name, file in config.source_files().items()}
    if config.init is None and (checksum := encoder_checksum(config.encoder)):
        found[ENCODER] = checksum
    for key, run in source_runs(config).items():
        with suppress(RunError):
            found[key] = Run(run).weights_checksum()
    return found


def check_inputs_stay(folder: Path, config: RunConfig) -> None:
    """Raise SettingsError for an input of a run in the folder that the run replaces."""
    inputs = {"--encoder": Path(config.encoder)} | files(config) | source_runs(config)
    for key, path in inputs.items():
        if path.exists() and path.resolve().is_relative_to(folder.resolve()):
            line = f"expected a path outside of the folder of the run, found {path}"
            raise SettingsError(f"{key}: {line}; choose another --output")


def has_changed(folders: Iterable[Run], task: str, split: str, path: Path) -> bool:
    """Return whether the file of a split has another checksum than when one of the runs began."""
    if not path.is_file():
        return False
    key, found = f"{task} {split}", digest(path)
    return any(folder.read("data.json").get(key, found) != found for folder in folders)
