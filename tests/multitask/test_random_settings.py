"""Random pairs of valid settings: refused in one line, or built and kept by JSON."""

import json
import random
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

from plain import built_in

from common.errors import SettingsError
from common.settings import convert, hints_of_fields
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from multitask.settings.methods import ROLES
from multitask.settings.run_settings import PRESETS

BASE = {"tasks": ("sst", "qqp", "sts"), "encoder": "tiny"}
SIMPLE = {bool: (True, False), int: (1, 2, 5), float: (0.1, 0.5, 1.0, 3.0), str: ("sst", "top-1")}
SPECIAL = {
    "preset": list(PRESETS),
    "tasks": [{"sst": {"head": "softmax"}, "qqp": {}}, {"qqp": {"loss": "with-contrastive"}}],
}


def values_of(hint):
    """Return a few valid values of a type."""
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return list(inside)
    if origin in (Union, UnionType):
        return [value for one in inside for value in values_of(one)]
    if origin is tuple:
        return [(one,) * count for one in values_of(inside[0]) for count in (1, 3)]
    if origin in (Mapping, dict):
        return [{"sst": one} for one in values_of(inside[1])]
    kind = inside[0] if origin is Annotated else hint
    return [one for one in SIMPLE.get(kind, ()) if accepts(hint, one)]


def accepts(hint, value):
    try:
        convert("", hint, value)
    except SettingsError:
        return False
    return True


def methods_of(role):
    """Return each method of a role by name, and with one setting of its own."""
    found = []
    for name, method in built_in(ROLES[role]).items():
        plain = {"name": name, "weight": 1.0} if role == "regularizers" else {"name": name}
        own = hints_of_fields(method).items()
        several = [plain, *(plain | {key: v} for key, hint in own for v in values_of(hint))]
        found += [[one] for one in several] if role == "regularizers" else several
    return found


def test_three_hundred_random_pairs_of_settings_are_refused_or_built():
    draw, known = random.Random(1), {}
    for key, hint in hints_of_fields(RunConfig).items():
        known[key] = methods_of(key) if key in ROLES else SPECIAL.get(key) or values_of(hint)
    names = [name for name, values in known.items() if values]
    built, lines = 0, []
    for _ in range(300):
        changes = {name: draw.choice(known[name]) for name in draw.sample(names, 2)}
        try:
            config = RunConfig(**BASE | changes)
            built += bool(build_tasks(config))
        except SettingsError as error:
            lines.append(str(error))
            continue
        stored = RunConfig(**json.loads(json.dumps(config.to_json())))
        assert stored.to_json() == config.to_json(), changes
        assert stored.changed(seed=5).to_json() == config.changed(seed=5).to_json(), changes
    assert built > 100
    assert built + len(lines) == 300
    assert all(line.isprintable() and " " in line for line in lines)
