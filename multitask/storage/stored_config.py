"""Configurations in files: reading them, and checks of what a run or a checkpoint holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from common.errors import RunError, SettingsError, UserError
from common.json_files import read_json
from common.settings import accepts, convert, expected, hints_of, short_repr
from common.yaml_files import read_yaml
from multitask.settings.config import RunConfig, check_tasks, difference, possible_paths
from multitask.settings.methods import METHOD_ROLES, ROLES, UserMethods, methods, owners
from multitask.storage.checkpoint_folders import CONFIG, CheckpointError
from tasks import TASKS
from tasks.described import FILES as DATA_FILES


def check_stored(content: Mapping[str, Any]) -> None:
    """Raise RunError for a stored configuration with a value that its setting cannot have.

    A run's folder may come from elsewhere, and its tasks' names are parts of files' names. Keys of
    other programs, and methods, which may come from a file of the user, are left to the caller.
    """
    for one in fields(RunConfig):
        if one.name in content and one.name not in METHOD_ROLES:
            try:
                convert(one.name, hints_of(RunConfig)[one.name], content[one.name])
            except SettingsError as error:
                raise RunError(str(error)) from error
    owned = owners()
    for key in content.keys() & owned.keys():
        several = [one for classes in owned[key].values() for one in classes]
        hint = [hints_of(one)[one.by_key()[key].name] for one in several]
        if not any(accepts(one, content[key]) for one in hint):
            raise RunError(f"{key}: expected {expected(hint[0])}, found {short_repr(content[key])}")
    for role in METHOD_ROLES:
        known = (*methods(role), *((None,) if None in ROLES[role].methods else ()))
        if role in content and content[role] not in known and not content.get("use"):
            raise RunError(
                f"{role}: expected the name of a method, found {short_repr(content[role])}"
            )
    names = () if content.get("use") else content.get("tasks", ())  # a user's file may have tasks
    check_tasks(names, content.get("own_tasks", {}), TASKS)


def check_of_run(folder: Path, config: Mapping[str, object]) -> None:
    """Raise CheckpointError, with the first setting that differs, for a checkpoint of another run.

    `config` is the run's configuration. Files and folders are compared only by name, because they
    may have been moved.
    """
    if not (folder / CONFIG).exists():
        raise CheckpointError(f"{folder}: expected the configuration of its run, found none")
    stored = read_json(folder / CONFIG, CheckpointError)
    if found := difference(without_folders(config), without_folders(stored), ignored=("device",)):
        raise CheckpointError(
            f"{folder}: expected a checkpoint of this run, found one of another configuration: "
            f"{found}"
        )


def without_folders(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as JSON, in which files and folders have no directories."""
    names: dict[str, Any] = {}
    for key in possible_paths():
        if value := config.get(key):
            parts = [Path(one).name for one in as_paths(value)]
            names[key] = parts if isinstance(value, list | tuple) else parts[0]
    own = {
        name: {**one, **{k: Path(str(one[k])).name for k in DATA_FILES if one.get(k)}}
        for name, one in config.get("own_tasks", {}).items()
    }
    return {**config, **names, "own_tasks": own}


def as_paths(value: Any) -> list[str]:
    """Return the paths in a setting, which holds one, several or none."""
    several = value if isinstance(value, list | tuple) else [value]
    return [str(one) for one in several if one]


SETTINGS_ERRORS = (
    *(RuntimeError, OSError, KeyError, TypeError, ValueError, AttributeError, AssertionError),
    ZeroDivisionError,
)


@contextmanager
def stored_run_errors(folder: Path) -> Iterator[None]:
    """Turn errors that the settings of a stored run cause into a RunError of one line.

    Use this context to build tasks, heads and weights from a run of unknown origin.
    """
    try:
        yield
    except UserError:
        raise
    except SETTINGS_ERRORS as error:
        found = f"{type(error).__name__}: {error}"
        raise RunError(f"{folder}: expected a run and its heads, found {found}") from error


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in a .json or .yaml file; raise RunError for other content."""
    if not file.is_file():
        found = "a folder" if file.is_dir() else "none"
        raise RunError(f"{file}: expected a .json or .yaml file of settings, found {found}")
    if file.suffix not in (".yaml", ".yml"):
        return read_json(file, RunError)
    found = read_yaml(file, "settings", RunError)
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise RunError(f"{file}: expected settings by name, found {type(found).__name__}")
    return found


def read_config(content: Mapping[str, Any], file: Path, use: UserMethods = ()) -> RunConfig:
    """Return a stored configuration of a run, which may `use` a user's own methods.

    Raise RunError with the name of the file if it is invalid.
    """
    try:
        config = RunConfig.from_json(content, use)
    except UserError as error:
        raise RunError(f"{file}: {error}") from error
    if missing := sorted(config.to_json().keys() - content.keys()):
        line = f"expected the settings of a run of this version, found no {missing[0]}"
        raise RunError(f"{file}: {line}; train the run again")
    return config


def without_paths(config: RunConfig | Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration as JSON for other machines: no directories, hub names as they are.

    An encoder that is not a local folder is a model of the hub and keeps its full name.
    """
    content = config.to_json() if isinstance(config, RunConfig) else config
    found = without_folders(content)
    if (encoder := content.get("encoder")) and not Path(str(encoder)).expanduser().exists():
        found["encoder"] = encoder
    return {key: found[key] for key in content}
