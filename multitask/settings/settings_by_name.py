"""Conversion between flat settings and the parts of a configuration.

Flags, JSON and keyword arguments are flat: a method is given by its name, and its settings are at
the same level as those of the configuration. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, Field
from functools import cache
from typing import Any

from common.errors import SettingsError
from common.settings import (
    Settings,
    convert,
    default_of,
    hints_of,
    plain,
    short_repr,
)
from common.suggestions import suggestion
from multitask.settings.following_defaults import (
    SCALE,
    default_gradients,
    default_scale,
    mode_of,
)
from multitask.settings.methods import (
    METHOD_ROLES,
    ROLES,
    Owners,
    UserMethods,
    bases,
    methods,
    owners,
)
from multitask.settings.methods_by_name import (
    method,
    of_methods,
    owner_of,
    regularizers,
    requested_mode,
)
from multitask.settings.presets import preset_values
from multitask.settings.user_methods import check_names
from tasks import TASKS, TaskOptions
from tasks.own_types.base import TaskDescription

ONE = "expected at most one of them"


def resolved(
    settings: Mapping[str, Any],
    known: Sequence[Field[Any]],
    hints: Mapping[str, Any],
    user_methods: UserMethods,
    strict: bool,
) -> dict[str, Any]:
    """Return the fields of a configuration from flat settings; raise SettingsError if invalid.

    The default of a setting comes from the preset, else from the objective, else from the mode,
    else from the setting itself. If `strict` is False, settings of methods that are not in use are
    ignored.
    """
    check_forms(settings, hints)
    user_methods = tuple(dict.fromkeys((*user_methods, *user_methods_in(settings))))
    check_names(user_methods)
    given = with_tasks(settings)
    mode = requested_mode(given, user_methods)
    preset = preset_values(given.get("preset"), mode)
    owned = owners(user_methods)
    check_keys(given, {one.name for one in known}, owned)
    objective = method("objective", given, preset, user_methods)
    base = {**getattr(objective, "defaults", {}), **preset}
    found = {
        one.name: value_of(one, hints, given, base, user_methods)
        for one in known
        if one.name != "regularizers"  # which depend on the tasks
    }
    found["mode"] = found["mode"] or mode_of(found)
    found["regularizers"] = regularizers(base | given, found["tasks"], user_methods)
    if found["gradients"] is None:
        found["gradients"] = default_gradients(found)
    if found["similarity_scale"] == SCALE and (strict or "similarity_scale" not in given):
        found["similarity_scale"] = default_scale(found)
    if user_methods:  # those of this project agree, or have rules of their own
        check_no_clash(found)
    if strict:
        check_used(settings, found, owned)
    return found


def check_keys(given: Iterable[str], names: Set[str], owned: Owners) -> None:
    """Raise SettingsError for an unknown setting, and for a method's with a name of a run's."""
    for key in (names | {"use"}) & owned.keys():  # `use` has the files of methods in config.json
        raise SettingsError(
            f"{key}: expected another name for this setting of {owner_of(key, owned)}: every run "
            "has a setting of this name"
        )
    for name in given:
        if name not in names and name not in owned:
            near = option_hint(name) or suggestion(name, [*names, *owned])
            raise SettingsError(f"expected the settings of a run, found {name!r}{near}")


def value_of(
    one: Field[Any],
    hints: Mapping[str, Any],
    given: Mapping[str, Any],
    base: Mapping[str, Any],
    user_methods: UserMethods,
) -> Any:
    """Return the value of a field: a given one, else that in `base`, else the default.

    `outside_tasks` are the classes of `user_methods` that are among the given tasks.
    """
    if one.name == "outside_tasks":
        classes = {cls.name: cls for cls in user_methods if issubclass(cls, TaskOptions)}
        return tuple(classes[name] for name in given["tasks"] if name in classes)
    if one.name in METHOD_ROLES:
        return method(one.name, given, base, user_methods)
    if (value := given.get(one.name, base.get(one.name, MISSING))) is MISSING:
        return default_of(one)
    return convert(one.name, hints[one.name], value)


def check_no_clash(found: Mapping[str, Any]) -> None:
    """Raise SettingsError if methods of two roles have one setting with different values.

    Settings of all methods are stored side by side, so that only one of the values would be kept.
    """
    seen: dict[str, tuple[str, Any]] = {}
    for role in METHOD_ROLES:
        for key, value in of_methods(role, found[role]).items():
            first, other = seen.setdefault(key, (role, value))
            if first != role and other != value:
                raise SettingsError(
                    f"{key}: expected one value for {first} and {role}, which both have this "
                    f"setting, found {short_repr(other)} and {short_repr(value)}; give it another "
                    "name in one of them"
                )


def option_hint(name: str) -> str:
    """Return how the option of a built-in task, given as a setting, is given; else nothing."""
    for task, options in TASKS.items():
        option = name.removeprefix(f"{task}_")
        if option != name and option in options.by_key():
            return f"; an option of a task: task({task!r}, {option}=...)"
    return ""


def check_forms(given: Mapping[str, Any], hints: Mapping[str, Any]) -> None:
    """Raise SettingsError if tasks, regularisers or settings by task have a wrong type."""
    for name in ("tasks", "regularizers", "outside_tasks"):
        several = given.get(name, ())
        if isinstance(several, Settings | str) and name == "regularizers":
            continue
        if not isinstance(several, list | tuple):
            what, found = "names of tasks" if name == "tasks" else name, short_repr(several)
            raise SettingsError(f"{name}: expected a sequence of {what}, found {found}")
    for name in ("task_options", "own_tasks"):
        if name in given:
            convert(name, hints[name], given[name])


def with_tasks(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with tasks as names, and their options in `task_options` and `own_tasks`."""
    tasks = given.get("tasks", ())
    names, options = [], dict(plain(given.get("task_options", {})))
    own = dict(given.get("own_tasks", {}))
    for one in tasks:
        if isinstance(one, TaskDescription):
            names.append(one.name)
            described = one.to_json()
            if own.get(one.name, described) != described:
                line = f"own_tasks and the object of {one.name}: {ONE}"
                raise SettingsError(f"{line}; task(..., name=...) gives a task another name")
            own[one.name] = described
        elif isinstance(one, TaskOptions):
            names.append(one.name)
            if options.pop(one.name, None):
                raise SettingsError(f"task_options and the object of {one.name}: {ONE}")
            if set_here := one.other_than_defaults():
                options[one.name] = set_here
        elif isinstance(one, type):
            raise SettingsError(f"tasks: expected names or objects, found class {one.__name__}")
        else:
            names.append(one)
    return {**given, "tasks": tuple(names), "task_options": options, "own_tasks": own}


def check_used(given: Mapping[str, Any], found: Mapping[str, Any], owned: Owners) -> None:
    """Raise SettingsError for a setting of an unused method, unless it is the default."""
    used = {key for role in METHOD_ROLES for key in of_methods(role, found[role])}
    for key, value in given.items():
        if key not in owned or key in used:
            continue
        several = [cls for classes in owned[key].values() for cls in classes]
        try:
            value = convert(key, hints_of(several[0])[several[0].by_key()[key].name], value)
        except SettingsError:
            given_value = MISSING  # invalid, but the method it belongs to says more
        else:
            given_value = value
        if key.endswith("weight") and issubclass(several[0], bases("regularizers")):
            weights = value.values() if isinstance(value, dict) else [value]
            if given_value is not MISSING and not any(weights):
                continue
        defaults = [default_of(cls.by_key()[key]) for cls in several]
        if given_value is MISSING or given_value not in defaults:
            owner, shown = owner_of(key, owned), short_repr(given[key])
            raise SettingsError(f"{key}: expected {owner}, found {shown} without it")


def explicit(given: Mapping[str, Any]) -> set[str]:
    """Return the names of settings that are given, of objects those that differ from defaults."""
    found = {key for key, value in given.items() if value is not None}
    for one in (given.get(role) for role in METHOD_ROLES):
        if isinstance(one, Settings):
            found |= one.other_than_defaults().keys()
    return found


def user_methods_in(given: Mapping[str, Any]) -> tuple[type[Settings], ...]:
    """Return the classes of objects in the settings that are not in the table of methods."""
    objects = [given.get(role) for role in METHOD_ROLES if role != "regularizers"]
    further = given.get("regularizers", ())
    objects += list(further) if isinstance(further, list | tuple) else [further]
    objects += [one for one in given.get("tasks", ()) if isinstance(one, TaskOptions)]
    classes = [type(one) for one in objects if isinstance(one, Settings)]
    classes += given.get("outside_tasks", ())
    return tuple(cls for cls in classes if cls not in built_in_classes())


@cache
def built_in_classes() -> frozenset[type[Settings]]:
    """Return the classes in the table of methods."""
    return frozenset(cls for role in ROLES for cls in methods(role).values())
