"""One folder a run: what is in it, whether it is finished, and writing without losing anything."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from multitask.config import RunConfig

CONTENTS = ("config.json", "metrics.json", "predictions", "checkpoint", "tensorboard")


class RunError(ValueError):
    """A run folder that cannot be used as asked; the message is one line for the user."""


class UnknownDeviceError(RunError):
    """A device that this PyTorch does not find."""


def default_folder(config: RunConfig) -> Path:
    """`runs/<what differs>-<hash>`: mode, tasks or sampling and combiner, encoder, seed."""
    parts = [config.mode]
    if config.mode == "single":
        parts += config.tasks
    else:
        parts += [config.sampling, config.combiner]
    parts += [Path(config.encoder).name, config.precision, f"seed{config.seed}", config.digest()]
    return Path("runs") / "-".join(parts)


def write_json(path: Path, content: Any) -> None:
    """Write JSON under a temporary name, then rename."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n", "utf-8")
    os.replace(temporary, path)


def finished_metrics(folder: Path) -> dict[str, Any] | None:
    """The metrics of a finished run, None if the folder holds none."""
    path = folder / "metrics.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def prepare(folder: Path, config: RunConfig, resume: bool, overwrite: bool) -> bool:
    """Make the folder ready for this run; True if it already holds the very run, finished.

    A folder in which nothing was computed yet counts as empty. Raises RunError in one line if the
    folder holds another run, or an unfinished one that is neither to be resumed nor overwritten,
    or if it cannot be written.
    """
    if overwrite:
        for name in CONTENTS:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    stored = folder / "config.json"
    begun = (folder / "metrics.json").exists() or (folder / "checkpoint").exists()
    if stored.exists() and begun:
        difference = config.difference(json.loads(stored.read_text("utf-8")))
        if difference:
            raise RunError(
                f"{folder}: expected this run's configuration, found another: {difference}; "
                "choose another --output, or --overwrite it"
            )
        if finished_metrics(folder) is not None:
            return True
        if not resume:
            raise RunError(
                f"{folder}: found an unfinished run; add --resume to go on with it, "
                "or --overwrite to start again"
            )
    try:
        (folder / "predictions").mkdir(parents=True, exist_ok=True)
        write_json(stored, config.to_json())
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror}") from error
    return False
