"""Methods from flat settings: by name, as an object, or the default; and back.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from common.errors import SettingsError
from common.repeats import repeated
from common.settings import Settings, default_of, expected, hints_of, required, short_repr
from common.suggestions import suggestion
from multitask.settings.methods import ROLES, Owners, UserMethods, bases, methods, pretrains


def method(
    role: str, given: Mapping[str, Any], base: Mapping[str, Any], user_methods: UserMethods
) -> Any:
    """Return the method of a role with its settings: by name, as an object, or the default.

    Missing settings are taken from `base`; those of an object are kept.
    """
    known, absent = methods(role, user_methods), ROLES[role].absent
    optional = None in ROLES[role].methods
    chosen = given.get(role, base.get(role))
    if chosen is None and not optional:
        chosen = base.get(role, next(iter(known)))
    if optional and (chosen is None or (isinstance(chosen, str) and chosen == absent)):
        return None
    if isinstance(chosen, str) and chosen in known:
        return build_method(known[chosen], {**base, **given})
    if isinstance(chosen, bases(role)):
        check_object(role, chosen, given, base)
        return with_settings(chosen, given)
    names = [absent] * optional + list(known)
    if role == "objective":  # suggest only methods of the mode
        wanted = requested_mode(given, user_methods) == "pretrain"
        names = [absent] * (not wanted)
        names += [name for name, one in known.items() if pretrains(one) == wanted]
    line = f"{role}: expected one of {', '.join(names)}, found {short_repr(chosen)}"
    raise SettingsError(line + (suggestion(chosen, names) or "; --use FILE.py adds methods"))


def check_object(role: str, one: Any, given: Mapping[str, Any], base: Mapping[str, Any]) -> None:
    """Raise SettingsError if an object has a default where the preset or the objective does not.

    An object does not record which of its settings were given. Its default would silently replace
    the other one.
    """
    for key, field in one.by_key().items():
        value, default = getattr(one, field.name), default_of(field)
        if key in base and key not in given and value == default != base[key]:
            found = f"{short_repr(value)} in the object of {role}"
            raise SettingsError(
                f"{key}: expected it to be set beside the object, found {found} and "
                f"{short_repr(base[key])} as default of the preset, objective or mode"
            )


def build_method(cls: type[Settings], given: Mapping[str, Any]) -> Any:
    """Return a method built from those settings that it has."""
    for key in required(cls):
        if key not in given:
            hint = hints_of(cls)[cls.by_key()[key].name]
            raise SettingsError(f"{key}: expected {expected(hint)} with {cls.name}, found none")
    return cls(**{one.name: given[key] for key, one in cls.by_key().items() if key in given})


def with_settings(one: Any, given: Mapping[str, Any]) -> Any:
    """Return a method with changes to those settings that it has."""
    changes = {field.name: given[key] for key, field in one.by_key().items() if key in given}
    return replace(one, **changes) if changes else one


def listed_regularizers(
    listed: Any, known: Mapping[str, type[Settings]]
) -> dict[str, Settings | None]:
    """Return regularisers by name: the object, or None where only the name is listed.

    Raise SettingsError for anything else, and for one that is listed twice.
    """
    several: Any = (listed,) if isinstance(listed, Settings | str) else listed
    found: dict[str, Settings | None] = {}
    names: list[str] = []
    for one in several:
        is_object = isinstance(one, bases("regularizers"))
        name = one.name if is_object else one
        if not isinstance(name, str) or name not in known:
            line = f"regularizers: expected some of {', '.join(known)}, found {short_repr(name)}"
            raise SettingsError(line + suggestion(name, known))
        names.append(name)
        found[name] = one if is_object else None
    if repeated(names):
        raise SettingsError(f"regularizers: expected each once, found {', '.join(names)}")
    return found


def regularizers(
    given: Mapping[str, Any], tasks: Sequence[str], user_methods: UserMethods
) -> tuple[Any, ...]:
    """Return the regularisers with a weight, in the table's order; weights are then by task."""
    known = methods("regularizers", user_methods)
    listed = listed_regularizers(given.get("regularizers", ()), known)
    weights = {name: f"{cls.prefix}weight" for name, cls in known.items()}
    learning = [name for name, cls in known.items() if getattr(cls, "learns_from_teacher", False)]
    # With a teacher, the one that is chosen, or else distillation, has a weight.
    first, *_ = [n for n in learning if n in listed or weights[n] in given] or learning
    if given.get("teacher") and listed.get(first) is None:
        given = {weights[first]: 1.0, **given}
    found = []
    for name, cls in known.items():
        weight = weights[name]
        if name not in listed and weight not in given:
            continue
        one = listed.get(name)
        one = build_method(cls, given) if one is None else with_settings(one, given)
        if name in listed and not one.weight and weight not in given:
            line = f"expected a number above 0 with regularizer {name}, found none"
            raise SettingsError(f"{weight}: {line}")
        value = one.weight
        by_task = dict(value) if isinstance(value, Mapping) else dict.fromkeys(tasks, value)
        by_task = {task: number for task, number in by_task.items() if number}
        if by_task or (tasks == () and value and not isinstance(value, Mapping)):
            found.append(replace(one, weight=by_task or value))
    return tuple(found)


def requested_mode(given: Mapping[str, Any], user_methods: UserMethods) -> str:
    """Return the mode as far as the settings determine it, to select values of a preset."""
    objective = given.get("objective")
    named = (
        methods("objective", user_methods).get(objective) if isinstance(objective, str) else None
    )
    if pretrains(named or type(objective)):
        return "pretrain"
    mode = given.get("mode")
    if isinstance(mode, str) and mode:
        return mode
    return "single" if len(given["tasks"]) == 1 else "multitask"


def of_methods(role: str, value: Any) -> dict[str, Any]:
    """Return the flat settings of a role: the name of its method, and the settings by name."""
    if role == "regularizers":
        return {key: setting for one in value for key, setting in one.values().items()}
    return {role: None} if value is None else {role: value.name, **value.values()}


def owner_of(key: str, owned: Owners) -> str:
    """Return the methods that a setting belongs to, as text."""
    parts = []
    for role, classes in owned[key].items():
        if role == "regularizers":
            parts.append(f"a {classes[0].prefix}weight above 0")
        else:
            parts.append(f"{role} {' or '.join(cls.name for cls in classes)}")
    return " or ".join(parts)
