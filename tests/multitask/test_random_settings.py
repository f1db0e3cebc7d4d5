"""Random settings: invalid ones are refused in one line, pairs of valid ones refused or built."""

import random
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Literal, get_args, get_origin

from msgspec import Meta

from common.errors import UserError
from common.settings import Name, accepts, alternatives, hints_of
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig, check_complete
from multitask.settings.methods import METHOD_ROLES, methods
from multitask.settings.presets import PRESETS

ALL = {"mode": "multitask", "tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}


def settings():
    """Return each setting by name: its type, and the settings with which a run uses it."""
    hints = hints_of(RunConfig)
    found = {one.name: (hints[one.name], {}) for one in fields(RunConfig)}
    del found["outside_tasks"]  # which users do not give
    for role in METHOD_ROLES:
        for name, method in methods(role).items():
            use = {role: name} if role != "regularizers" else {f"{method.prefix}weight": 1.0}
            for key, one in method.by_key().items():
                found.setdefault(key, (hints_of(method)[one.name], use))
    return found


def values_of(hint):
    """Return a few valid values of a type, except names of files and tasks."""
    origin, further = get_origin(hint), get_args(hint)
    if hint is bool:
        return [True, False]
    if origin is Literal:
        return list(further)
    if hint == Name or hint is str:
        return []
    if origin in (Mapping, dict):
        return [{"sst": one} for one in values_of(further[1])]
    if origin is tuple:
        return [*[(one, one, one) for one in values_of(further[0])][:2], (0.2, 0.3, 0.5)]
    if further and any(isinstance(one, Meta) for one in further):
        candidates = (1, 2, 5) if further[0] is int else (0.1, 0.5, 1.0, 3.0)
        return [one for one in candidates if accepts(hint, one)]
    kinds = alternatives(hint)
    return [] if len(kinds) < 2 else [value for one in kinds for value in values_of(one)]


def outcome(changes):
    """Return the error message of a configuration, or the tasks that it builds."""
    try:
        config = RunConfig(**(ALL | changes))
        check_complete(config)
        tasks = build_tasks(config)
    except UserError as error:
        return str(error)
    stored = RunConfig.from_json(config.to_json())
    assert stored.to_json() == config.to_json()
    assert stored.changed(seed=5).to_json() == config.changed(seed=5).to_json()
    assert replace(config) == config
    return tasks


def test_two_hundred_random_pairs_of_settings_are_refused_or_built():
    """Valid values of two settings are refused in one line, or build tasks."""
    draw, known = random.Random(1), settings()
    values = {name: (values_of(hint), use) for name, (hint, use) in known.items()}
    values |= {role: (list(methods(role)), {}) for role in METHOD_ROLES if role != "regularizers"}
    values["preset"] = list(PRESETS), {}
    values = {name: found for name, found in values.items() if found[0] and name != "regularizers"}
    built = 0
    for _ in range(200):
        changes = {}
        for name in draw.sample(list(values), 2):
            choices, use = values[name]
            changes |= draw.choice([{}, use]) | {name: draw.choice(choices)}
        found = outcome(changes)
        assert found
        built += isinstance(found, dict)
        assert isinstance(found, dict) or re.search("^[a-z_-].*: expected .*", found), changes
        assert isinstance(found, dict) or found.isprintable()
    assert built > 40
