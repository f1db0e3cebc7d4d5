"""Presets: the settings of papers in presets.toml, each with its source in the paper.

A preset only changes defaults; explicit settings override it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from common.errors import SettingsError

PRESETS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("presets.toml").read_text("utf-8"))


def preset_settings(name: Any, mode: str) -> dict[str, Any]:
    """Return the settings of a preset in a mode; raise SettingsError for an unknown name."""
    if name not in PRESETS:
        raise SettingsError(f"preset: there are {', '.join(PRESETS)}, found {name!r}")
    return {**PRESETS[name]["settings"], **PRESETS[name].get(mode, {})}
