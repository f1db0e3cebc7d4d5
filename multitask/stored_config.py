"""Checks of configurations that a run's folder or a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from common.json_files import read_json
from common.settings import accepts, checked, expected, hints_of, shown
from multitask.atomic_dirs import CONFIG, CheckpointError
from multitask.config import RunConfig, difference, places
from multitask.errors import RunError
from multitask.flat import METHODS
from multitask.methods import methods, owners
from multitask.run_settings import MACHINE
from tasks import TASKS
from tasks.described import FILES as DATA_FILES
from tasks.described import from_json


def check_stored(content: Mapping[str, Any]) -> None:
    """RunError for a stored configuration with a value that its setting cannot have.

    A run's folder may come from elsewhere, and its tasks' names are parts of files' names. Keys of
    other programs, and methods, which may come from a file of the user, are left to the caller.
    """
    for one in fields(RunConfig):
        if one.name in content and one.name not in METHODS:
            try:
                checked(one.name, hints_of(RunConfig)[one.name], content[one.name])
            except SettingsError as error:
                raise RunError(str(error)) from error
    owned = owners()
    for key in content.keys() & owned.keys():
        several = [one for classes in owned[key].values() for one in classes]
        hint = [hints_of(one)[one.by_key()[key].name] for one in several]
        if not any(accepts(one, content[key]) for one in hint):
            raise RunError(f"{key}: expected {expected(hint[0])}, found {shown(content[key])}")
    for role in METHODS:
        known = (*methods(role), *((None,) if role == "objective" else ()))
        if role in content and content[role] not in known and not content.get("use"):
            raise RunError(f"{role}: expected the name of a method, found {shown(content[role])}")
    own = content.get("own_tasks", {})
    for name, described in own.items():
        from_json(name, described)
    for name in content.get("tasks", ()):
        if name not in (*TASKS, *own) and not content.get("use"):
            raise RunError(f"tasks: expected names of tasks, found {name!r}")


def belongs_to_run(folder: Path, config: Mapping[str, object]) -> bool:
    """Return whether a checkpoint holds the configuration of its run; older versions wrote none.

    Files and folders are compared only by name, because they may have been moved. Raise
    CheckpointError with the first setting that differs if the configuration is not `config`.
    """
    if not (folder / CONFIG).exists():
        return False
    stored = read_json(folder / CONFIG, CheckpointError)
    if found := difference(without_folders(config), without_folders(stored), ignored=MACHINE):
        raise CheckpointError(
            f"{folder}: expected a checkpoint of this run, found one of another configuration: "
            f"{found}"
        )
    return True


def without_folders(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as JSON, in which files and folders have no directories."""
    keys = (*places(), "encoder")
    names = {key: Path(str(config[key])).name for key in keys if config.get(key)}
    own = {
        name: {**one, **{k: Path(str(one[k])).name for k in DATA_FILES if one.get(k)}}
        for name, one in config.get("own_tasks", {}).items()
    }
    return {**config, **names, "own_tasks": own}


def without_paths(config: RunConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as JSON for other machines: no directories, hub names as they are.

    An encoder that is not a local folder is a model of the hub and keeps its full name.
    """
    content = config.to_json() if isinstance(config, RunConfig) else config
    found = without_folders(content)
    if (encoder := content.get("encoder")) and not Path(str(encoder)).expanduser().exists():
        found["encoder"] = encoder
    return {key: found[key] for key in content}
