"""The complete description of an own task, as a run stores it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import msgspec

from common.errors import SettingsError, UserError
from common.settings import convert, hints_of, short
from tasks.metrics import OVERALL_KEYS
from tasks.own_types import TYPES
from tasks.own_types.base import ADDED, TaskDescription
from tasks.registry import TASK_NAMES

NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
# Names of built-in tasks, of their prediction files and of other keys of the metrics.
RESERVED = (*TASK_NAMES, "para", *OVERALL_KEYS)
# Attributes of nn.ModuleDict, which holds the heads: a task cannot have these names.
MODULE_ATTRIBUTES = (
    " add_module apply bfloat16 buffers call_super_init children clear compile cpu cuda double"
    " dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter"
    " get_submodule half ipu items keys load_state_dict modules mtia named_buffers"
    " named_children named_modules named_parameters parameters pop register_backward_hook"
    " register_buffer register_forward_hook register_forward_pre_hook"
    " register_full_backward_hook register_full_backward_pre_hook register_module"
    " register_parameter register_state_dict_post_hook register_state_dict_pre_hook"
    " requires_grad_ set_extra_state set_submodule share_memory state_dict to to_empty train"
    " training type update values xpu zero_grad"
    " "
)
OF_SOME_TYPES = tuple(dict.fromkeys(key for one in TYPES.values() for key in one.keys))
MEASURED = tuple(dict.fromkeys(key for one in TYPES.values() for key in one.measured))


def is_reserved(name: str) -> bool:
    """Return whether a name is reserved."""
    return name in RESERVED or f" {name} " in MODULE_ATTRIBUTES


def name_fault(name: object) -> str | None:
    """Return why a task cannot have a name, or None."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        expected = "a name of 1 to 32 lower-case letters, digits, - and _, the first a letter"
        return f"expected {expected}, found {short(name)}"
    return f"expected another name than {name}, which is reserved" if is_reserved(name) else None


def output_signature(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that define what a head predicts, without the location of the data."""
    kept = ("type", "texts", "labels", "low", "high", "joint", *MEASURED)
    return {key: described.get(key) for key in kept}


def from_json(name: str, content: Mapping[str, Any]) -> TaskDescription:
    """Read the output of `to_json`; raise UserError for other content, as folders are not trusted.

    The name is checked too, because it becomes part of file names.
    """
    if content.get("split") != "hash":
        line = "expected split hash, found a run of an earlier version; train it again"
        raise UserError(f"own_tasks: {name}: {line}")
    own = TYPES.get(str(content.get("type")))
    some = (*OF_SOME_TYPES, *MEASURED)
    others = {key for key in some if key in ADDED and own and key not in own.keys + own.measured}
    known = {field.name for field in fields(TaskDescription)[1:]} - others
    if fault := name_fault(name):
        raise UserError(f"own_tasks: {fault}")
    for key in sorted((known - {*ADDED}) - content.keys() | content.keys() - known):
        found = "none" if key in known else "an unknown key"
        raise UserError(f"own_tasks: {name}: {key}: expected the settings of a task, found {found}")
    for key, hint in hints_of(TaskDescription).items():
        if key in content:
            try:
                convert(key, hint, content[key])
            except SettingsError as error:
                raise UserError(f"own_tasks: {name}: {error}") from error
    described = msgspec.convert({**content, "name": name}, TaskDescription)
    if fault := stored_fault(described):
        raise UserError(f"own_tasks: {name}: {fault}")
    return described


def stored_fault(described: TaskDescription) -> str | None:
    """Return what is wrong with a stored description, or None."""
    own, texts = TYPES[described.type], len(described.texts)
    if texts not in own.texts:
        return f"texts: expected {' or '.join(map(str, own.texts))}, found {texts}"
    if fault := own.label_fault(1 if described.label else len(described.labels)):
        return f"label: {fault}"
    if described.joint and texts != 2:
        return "joint: expected false, found true"
    return own.fault(described)
