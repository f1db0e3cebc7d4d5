"""Whether a run may begin in a folder, and what is written before its first step."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from common.json_files import write_json
from multitask.config import RunConfig, places
from multitask.errors import RunError
from multitask.run_folder import CODE, FOLDERS, RunFolder
from multitask.stored_config import of_run
from multitask.user_methods import source_of
from tasks.described import FILES as DATA_FILES

if TYPE_CHECKING:
    from tasks.data import Split  # which loads torch


def with_kernel(folder: RunFolder, config: RunConfig, overwrite: bool) -> tuple[RunConfig, str]:
    """Return the configuration with a kernel in the place of `auto`, and why it was chosen.

    A run keeps the kernel it began with: on resume the noise of a measurement must not change
    the arithmetic.
    """
    began = folder.stored() if config.linear == "auto" and not overwrite else None
    if began is not None:
        kernel = began.get("linear", "mkl")
        if kernel not in ("mkl", "onednn"):
            file = folder.path / "config.json"
            raise RunError(f"{file}: linear: expected mkl or onednn, found {kernel!r}")
        return config.changed(linear=kernel), "the run began with it"
    from minbert.linear import choose_linear  # loads torch

    choice = choose_linear(config.linear)
    return config.changed(linear=choice.kernel), choice.reason


def holds_finished(folder: RunFolder, config: RunConfig, resume: bool, overwrite: bool) -> bool:
    """Return whether the folder holds this very run, finished. Nothing is written here.

    A folder in which nothing was computed yet counts as empty. Raises RunError in one line if
    the folder holds something that is no run, another run, an unfinished one that is neither to
    be resumed nor overwritten, or what this run begins from; CheckpointError if its weights are
    of another configuration than its `config.json`.
    """
    check_sources(folder, config)
    stored = folder.run_or_nothing()
    if stored is None or overwrite or not folder.begun():
        return False
    if difference := config.difference(stored):
        raise RunError(
            f"{folder.path}: expected this run's configuration, found another: {difference}; "
            "choose another --output, or --overwrite it"
        )
    if folder.metrics() is not None:
        if folder.best.exists():
            of_run(folder.best, config.to_json())
        return True
    if not resume:
        raise RunError(
            f"{folder.path}: found an unfinished run; add --resume to go on with it, "
            "or --overwrite to start again"
        )
    return False


def check_sources(folder: RunFolder, config: RunConfig) -> None:
    """RunError for a run that begins from what it would replace."""
    own = [file for one in config.own_tasks.values() for file in map(one.get, DATA_FILES)]
    flat = config.flat()
    sources = [(f"--{key}", flat.get(key)) for key in ("encoder", *places())]
    parts = [(folder.path / name).resolve() for name in FOLDERS]
    for flag, source in [*sources, *(("--task", file) for file in own)]:
        if source and any(Path(source).resolve().is_relative_to(part) for part in parts):
            raise RunError(
                f"{flag} {source}: expected it outside of {folder.path}, whose own parts are "
                "replaced"
            )


def make_ready(folder: RunFolder, config: RunConfig, overwrite: bool) -> None:
    """Remove what is to be overwritten and write the configuration.

    To be called when everything that the run needs was found: a wrong path then costs nothing
    that was computed. Raises RunError where the folder cannot be written.
    """
    try:
        if folder.run_or_nothing() is not None and (overwrite or not folder.begun()):
            folder.remove()
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.write_config(config.to_json())  # first: it makes the rest a run's
        folder.predictions.mkdir(exist_ok=True)
        for file in filter(None, map(source_of, config.outside)):
            (folder.path / CODE).mkdir(exist_ok=True)
            shutil.copyfile(file, folder.path / CODE / file.name)
    except OSError as error:
        raise RunError(f"{folder.path}: cannot be written: {error.strerror}") from error


def write_ids(folder: RunFolder, splits: Mapping[str, Mapping[str, Split]]) -> None:
    """Write `ids.json`: which examples of each task are train, dev and test."""
    found = {
        task: {split: " ".join(one.examples.ids) for split, one in several.items()}
        for task, several in splits.items()
    }
    write_json(folder.path / "ids.json", found)
