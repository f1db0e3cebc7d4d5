"""The rule that a mode has only its settings: the property `modes` in `run_settings.py`.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any

from common.settings import Settings, default_of
from common.text import any_of
from multitask.settings.following_defaults import following_defaults
from multitask.settings.methods import ROLES, is_default
from multitask.settings.objective_rules import weights_by_task
from multitask.settings.presets import preset_values
from multitask.settings.setting_types import TRAINING_MODES, has_mode

if TYPE_CHECKING:
    from multitask.settings.config import RunConfig


def mode_rules(c: RunConfig) -> Iterator[str]:
    """Yield settings that the mode does not have, unless their values are defaults.

    A run of one task may be a changed copy of a run of several, and keep its settings. Modes that
    do not train, such as probe, have the settings of the runs that they copy.
    """
    if c.mode not in TRAINING_MODES:
        return
    own_mode = "multitask" if c.mode == "single" else c.mode
    preset = preset_values(c.preset, c.mode)
    for one in fields(c):
        if has_mode(one, own_mode) or is_by_default(c, one):
            continue
        modes = any_of([mode for mode in one.metadata["modes"] if mode in TRAINING_MODES])
        line = f"expected mode {modes}, found {c.mode}"
        if one.name in preset:
            yield f"preset {c.preset}, which sets {one.name}: {line}"
        elif one.name == "regularizers":
            yield from (f"{key}: {line}" for key in weights_by_task(c))
        else:
            yield f"{one.name}: {line}"


def is_by_default(c: RunConfig, one: Field[Any]) -> bool:
    """Return whether a setting has its default, or the one that follows from other settings."""
    value = getattr(c, one.name)
    if isinstance(value, Settings):  # the default method of a part that every run has
        return None not in ROLES[one.name].methods and is_default(one.name, value)
    if isinstance(value, Mapping) and not value:  # set for no task
        return True
    return value in (default_of(one), following_defaults(vars(c)).get(one.name))
