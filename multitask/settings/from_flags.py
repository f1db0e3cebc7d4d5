"""The settings of a run from settings by the names of their flags, which are flat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field, fields
from types import MappingProxyType
from typing import Any

from common.errors import SettingsError
from common.settings import Settings, default_of, hints_of_fields, methods, takes_names
from multitask.settings.config import RunConfig, as_mapping
from multitask.settings.methods import ROLES, task_classes
from multitask.settings.run_settings import RunSettings


def nested(
    flat: Mapping[str, Any], tasks: Sequence[str], base: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return settings as `RunConfig` has them from settings by the names of their flags.

    `base` has settings that these are added to, from which a method is taken if no flag selects
    another. Raise SettingsError for a flag of a method or a task that the run does not have.
    """
    left = dict(flat)
    found = regularizers(left, tasks, base) | task_options(left, tasks)
    for one in fields(RunSettings):
        key, hint = one.name, hints_of_fields(RunSettings)[one.name]
        if key in ROLES and key != "regularizers":
            before = base.get(key)
            usual = before.get("name") if isinstance(before, Mapping) else before
            name = left.pop(key, usual)
            cls = methods(ROLES[key]).get(str(name or getattr(default_of(one), "name", "")))
            own = {} if cls is None else taken(left, cls)
            if key in flat or own:
                found[key] = {**({"name": name} if name else {}), **own} if own else name
        elif key in left:
            value = left.pop(key)
            by_name = takes_names(hint) and isinstance(value, list)
            found[key] = named_values(key, value, tasks) if by_name else value
    for key in left:
        raise SettingsError(f"{key}: needs {' or '.join(owners(key))}")
    return found


def taken(left: dict[str, Any], cls: type[Settings]) -> dict[str, Any]:
    """Remove the settings of a method from `left`; return them by the names of its fields."""
    keys = {cls.prefix + one.name: one.name for one in fields(cls)}
    return {keys[key]: left.pop(key) for key in list(left) if key in keys}


def regularizers(
    left: dict[str, Any], tasks: Sequence[str], base: Mapping[str, Any]
) -> dict[str, Any]:
    """Remove the settings of regularisers from `left`; return those that have a weight."""
    given = base.get("regularizers", ())
    several = given if isinstance(given, list | tuple) else [given]
    found = {one.get("name"): one for one in map(as_mapping, several)}
    before = dict(found)
    for name, cls in methods(ROLES["regularizers"]).items():
        own = taken(left, cls)
        if isinstance(own.get("weight"), list):
            own["weight"] = named_values(f"{cls.prefix}weight", own["weight"], tasks)
        if own:
            found[name] = {"name": name, **found.get(name, {}), **own}
            if not found[name].get("weight"):
                raise SettingsError(f"{cls.prefix}{min(own)}: needs {cls.prefix}weight above 0")
    return {} if found == before else {"regularizers": list(found.values())}


def task_options(left: dict[str, Any], tasks: Sequence[str]) -> dict[str, Any]:
    """Remove the options of tasks from `left`; return them by task."""
    options: dict[str, dict[str, Any]] = {}
    used = set()
    for name, cls in task_classes().items():
        for one in fields(cls):
            key = option_key(name, one)
            if key in left and name in tasks:
                options.setdefault(name, {})[one.name] = left[key]
                used.add(key)
    for key in used:
        del left[key]
    return {"task_options": options} if options else {}


def option_key(task: str, one: Field[Any]) -> str:
    """Return the name of the flag of a task's option."""
    return one.name if one.metadata.get("shared") else f"{task}_{one.name}"


def owners(key: str) -> list[str]:
    """Return the methods and tasks that have a setting."""
    found = [
        f"--{role.replace('_', '-')} {name}"
        for role, family in ROLES.items()
        for name, cls in methods(family).items()
        if key in [cls.prefix + one.name for one in fields(cls)]
    ]
    tasks = task_classes().items()
    return found + [
        f"task {n}" for n, cls in tasks if key in [option_key(n, f) for f in fields(cls)]
    ]


def named_values(key: str, given: Sequence[tuple[str, Any]], tasks: Sequence[str]) -> Any:
    """Return one value for all tasks, or values by task: `1`, `sst=1 sts=3`, `1 sts=3`."""
    found = dict(given)
    if len(found) < len(given):
        raise SettingsError(f"{key}: several values for one task")
    if found.keys() == {""}:
        return found[""]
    return ({} if "" not in found else dict.fromkeys(tasks, found.pop(""))) | found


def changed_by_flags(config: RunConfig, **flat: Any) -> RunConfig:
    """Return the configuration with other settings by the names of their flags."""
    return config.changed(**nested(flat, flat.get("tasks", config.tasks), config.to_json()))
