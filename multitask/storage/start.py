"""The start of a run: checks of its folder, and the files written before the first step."""

from __future__ import annotations

from pathlib import Path

from common.errors import OtherRunError, RunError
from common.json_files import write_json
from multitask.settings.config import RunConfig, difference, possible_paths
from multitask.storage.run_folder import CODE, FOLDERS, RunFolder
from multitask.storage.stored_config import as_paths, check_of_run
from tasks.data import Splits
from tasks.described import FILES as DATA_FILES


def holds_finished(folder: RunFolder, config: RunConfig, resume: bool, overwrite: bool) -> bool:
    """Return whether the folder holds exactly this run, finished. Nothing is written here.

    A folder in which nothing was computed yet counts as empty. Raise RunError if the folder holds
    something other than a run, another run, an unfinished run without `resume` or `overwrite`, or
    a source of this run. Raise CheckpointError if its weights have another configuration than its
    `config.json`.
    """
    check_inputs_stay(folder, config)
    stored = folder.run_or_nothing()
    if stored is None or overwrite or not folder.has_results():
        return False
    if found := difference(config.to_json(), stored):
        same = f"go on with --config {folder.path / 'config.json'} in place of the settings, "
        goes_on = resume and folder.metrics() is None
        raise OtherRunError(
            f"{folder.path}: expected this run's configuration, found another: {found}; "
            f"{same if goes_on else ''}choose another --output, or add --overwrite"
        )
    if folder.metrics() is not None:
        if folder.best.exists():
            check_of_run(folder.best, config.to_json())
        return True
    if not resume:
        raise RunError(
            f"{folder.path}: found an unfinished run; add --resume to go on with it, "
            "or --overwrite to start again"
        )
    return False


def check_inputs_stay(folder: RunFolder, config: RunConfig) -> None:
    """Raise RunError if an input of the run is in a folder that the run would replace."""
    own = [file for one in config.own_tasks.values() for file in map(one.get, DATA_FILES)]
    flat = config.flat()
    inputs = [(f"--{key}", one) for key in possible_paths() for one in as_paths(flat.get(key))]
    parts = [(folder.path / name).resolve() for name in FOLDERS]
    for flag, found in [*inputs, *(("--task", file) for file in own)]:
        if found and any(Path(found).resolve().is_relative_to(part) for part in parts):
            raise RunError(
                f"{flag} {found}: expected a path outside of {folder.path}, whose files the "
                "run replaces"
            )


def make_ready(folder: RunFolder, config: RunConfig, overwrite: bool) -> None:
    """Remove a run that is to be overwritten, and write the configuration.

    Call this function after all inputs of the run were found, so that a wrong path does not delete
    results. Raise RunError if the folder cannot be written.
    """
    try:
        if folder.run_or_nothing() is not None and (overwrite or not folder.has_results()):
            folder.remove()
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_config(config.to_json())  # first: it marks the folder as a run
        folder.predictions.mkdir(exist_ok=True)
        for name, content in filter(None, (one.__source__ for one in config.user_methods)):
            (folder.path / CODE).mkdir(exist_ok=True)
            (folder.path / CODE / name).write_bytes(content)
    except OSError as error:
        raise RunError(f"{folder.path}: cannot be written: {error.strerror}") from error


def write_ids(folder: RunFolder, splits: Splits) -> None:
    """Write `ids.json`, the ids of the train, dev and test examples of each task."""
    found = {
        task: {split: " ".join(one.examples.ids) for split, one in several.items()}
        for task, several in splits.items()
    }
    write_json(folder.path / "ids.json", found)
