"""The settings of a run from settings by the names of their flags, which are flat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from common.errors import SettingsError
from common.settings import convert, default_of, hints_of_fields, methods, takes
from multitask.settings.config import as_mapping
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import RunSettings
from tasks import TaskOptions


def nested(
    flat: Mapping[str, Any], tasks: Iterable[str], base: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return settings as `RunConfig` has them from settings by the names of their flags.

    `base` has settings that these are added to, from which a method is taken if no flag selects
    another. Raise SettingsError for a flag of a method or a task that the run does not have.
    """
    left, found = dict(flat), dict[str, Any]()
    usual = {one.name: default_of(one) for one in fields(RunSettings)}
    for key, hint in hints_of_fields(RunSettings).items():
        if key == "regularizers":
            if (terms := regularizers(left, tasks, base)) is not None:
                found[key] = terms
        elif key in ROLES:
            name = left.pop(key, as_mapping(base.get(key)).get("name"))
            cls = methods(ROLES[key]).get(str(name or getattr(usual[key], "name", "")))
            if own := {} if cls is None else taken(left, cls, tasks):
                found[key] = {"name": name, **own} if name else own
            elif key in flat:
                found[key] = name
        elif key in left and key != "tasks":
            found[key] = by_task(key, hint, left.pop(key), tasks)
    known = methods(TaskOptions)
    options = {name: taken(dict(flat), known[name], tasks) for name in tasks if name in known}
    used = {"tasks"}.union(*(keys_of(known[name]) for name, own in options.items() if own))
    for key in (key for key in left if key not in used):
        raise SettingsError(f"{key}: needs {' or '.join(owners(key))}")
    if any(options.values()):
        found["tasks"] = {name: options.get(name, {}) for name in tasks}
    elif "tasks" in flat:
        found["tasks"] = flat["tasks"]
    return found


def keys_of(cls: Any) -> dict[str, str]:
    """Return the fields of a method or a task by the names of their flags."""
    return {
        one.name if one.metadata.get("shared") else cls.prefix + one.name: one.name
        for one in fields(cls)
    }


def taken(left: dict[str, Any], cls: Any, tasks: Iterable[str]) -> dict[str, Any]:
    """Remove the settings of a method from `left`; return them by the names of its fields."""
    hints = hints_of_fields(cls)
    return {
        name: convert(key, hints[name], by_task(key, hints[name], left.pop(key), tasks))
        for key, name in keys_of(cls).items()
        if key in left
    }


def regularizers(
    left: dict[str, Any], tasks: Iterable[str], base: Mapping[str, Any]
) -> list[dict[str, Any]] | None:
    """Remove the settings of regularisers from `left`; return all terms, or None without change."""
    given = base.get("regularizers", ())
    several = given if isinstance(given, list | tuple) else [given]
    found, changed = {one["name"]: one for one in map(as_mapping, several)}, False
    for name, cls in methods(ROLES["regularizers"]).items():
        if own := taken(left, cls, tasks):
            found[name] = {"name": name, **found.get(name, {}), **own}
            changed = True
            if "weight" not in found[name]:
                raise SettingsError(f"{cls.prefix}{min(own)}: needs {cls.prefix}weight above 0")
    return [*found.values()] if changed else None


def owners(key: str) -> list[str]:
    """Return the methods and tasks that have a setting."""
    found = {
        f"--{role.replace('_', '-')} {name}": cls
        for role, family in ROLES.items()
        for name, cls in methods(family).items()
    }
    found |= {f"task {name}": cls for name, cls in methods(TaskOptions).items()}
    return [name for name, cls in found.items() if key in keys_of(cls)]


def by_task(key: str, hint: Any, value: Any, tasks: Iterable[str]) -> Any:
    """Return the texts of a flag as one value for all tasks, or as values by task.

    They are `1`, `sst=1 sts=3`, or `1 sts=3`. Other values stay as they are.
    """
    if not (takes(hint, Mapping) and isinstance(value, list)):
        return value
    pairs = [(name, one) for name, _, one in (text.rpartition("=") for text in value)]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise SettingsError(f"{key}: several values for one task")
    if found.keys() == {""}:
        return found[""]
    return ({} if "" not in found else dict.fromkeys(tasks, found.pop(""))) | found
