"""Settings by the names of their flags, which are flat."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, fields
from typing import Any, NamedTuple

from common.errors import SettingsError
from common.settings import default_of, hints_of, methods, takes
from multitask.settings.config import as_mapping
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import RunSettings
from tasks import TaskOptions

RUN = {one.name: one for one in fields(RunSettings)}


class Place(NamedTuple):
    """Where a setting is: in the run, in a method of a role, or in the options of a task."""

    part: str  # "", the role or "tasks"
    cls: Any
    field: Field[Any]


def places() -> dict[str, list[Place]]:
    """Return the places of all settings by the names of their flags, which methods may share."""
    families: dict[str, Any] = {**ROLES, "tasks": TaskOptions}
    classes: list[tuple[str, Any]] = [("", RunSettings)]
    classes += [(part, one) for part, base in families.items() for one in methods(base).values()]
    found: dict[str, list[Place]] = {}
    for part, cls in classes:
        for one in fields(cls):
            key = one.name if one.metadata.get("shared") else cls.prefix + one.name
            found.setdefault(key, []).append(Place(part, cls, one))
    return found


def nested(
    flat: Mapping[str, Any], tasks: Iterable[str], base: Mapping[str, Any]
) -> dict[str, Any]:
    """Return settings as `RunConfig` has them from settings by the names of their flags.

    `base` has settings that these are added to, from which a method is taken if no flag selects
    another. Raise SettingsError for a flag of a method or a task that the run does not have.
    """
    names, known, parts = [*tasks], places(), dict[str, dict[str, dict[str, Any]]]()
    used: dict[str, Any] = {"": [""], "tasks": names}
    for role in ROLES:
        name = flat.get(role) or as_mapping(base.get(role)).get("name")
        used[role] = [name or getattr(default_of(RUN[role]), "name", "")]
    used["regularizers"] = methods(ROLES["regularizers"])
    for key, value in flat.items():
        its = [one for one in known[key] if one.cls.name in used[one.part]]
        if not its:
            owners = [
                f"{'task' if one.part == 'tasks' else f'--{one.part}'} {one.cls.name}"
                for one in known[key]
            ]
            raise SettingsError(f"{key}: needs {' or '.join(owners)}")
        for one in its:
            own = parts.setdefault(one.part, {}).setdefault(one.cls.name, {})
            own[one.field.name] = by_task(key, hints_of(one.cls)[one.field.name], value, names)
    found = parts.pop("", {"": {}})[""]
    if (options := parts.pop("tasks", None)) is not None:
        found["tasks"] = {name: options.get(name, {}) for name in names}
    if (several := parts.pop("regularizers", None)) is not None:
        terms = {one["name"]: one for one in map(as_mapping, base.get("regularizers", ()))}
        for name, own in several.items():
            terms[name] = {"name": name, **terms.get(name, {}), **own}
        found["regularizers"] = [*terms.values()]
    for role, methods_of_role in parts.items():
        ((name, own),) = methods_of_role.items()
        found[role] = {"name": name, **own}
    return found


def by_task(key: str, hint: Any, value: Any, tasks: Iterable[str]) -> Any:
    """Return the texts of a flag as one value for all tasks, or as values by task.

    They are `1`, `sst=1 sts=3`, or `1 sts=3`. Other values stay as they are.
    """
    if not (takes(hint, Mapping) and isinstance(value, list)):
        return value
    found = {name: one for name, _, one in (text.rpartition("=") for text in value)}
    if len(found) < len(value):
        raise SettingsError(f"{key}: give one value for each task")
    if found.keys() == {""}:
        return found[""]
    return ({} if "" not in found else dict.fromkeys(tasks, found.pop(""))) | found
