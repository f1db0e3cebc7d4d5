"""Runs that have not finished: their epochs so far, and a notice where their weights are used."""

from __future__ import annotations

import warnings
from pathlib import Path

from common.errors import RunError, UnfinishedRunWarning
from common.json_files import read_json
from common.run_files import EXPORTED
from multitask.storage.checkpoint_folders import newest_first
from multitask.storage.run_folder import RunFolder


def finished_epochs(run: Path) -> int | None:
    """Return the epochs that an unfinished run has finished; None without a checkpoint of training.

    Raise RunError if its newest checkpoint is damaged.
    """
    checkpoints = newest_first(RunFolder(run).checkpoints)
    if not checkpoints:
        return None
    file = checkpoints[0] / "state.json"
    try:
        return int(read_json(file, RunError)["progress"]["epoch"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{file}: expected the progress of a run, found another content") from error


def warn_if_unfinished(run: Path) -> None:
    """Warn the caller's caller if the run has not finished; an export is never unfinished."""
    if (run / EXPORTED).exists() or RunFolder(run).metrics_file.exists():
        return
    try:
        epochs = finished_epochs(run)
    except RunError:  # --resume tries the checkpoint before it
        epochs = None
    of = RunFolder(run).settings().get("epochs")
    done = "has not finished" if epochs is None else f"has finished {epochs} of {of} epochs"
    line = f"{run}: this run {done}: its best epoch so far is used; --resume continues it"
    warnings.warn(line, UnfinishedRunWarning, stacklevel=3)
