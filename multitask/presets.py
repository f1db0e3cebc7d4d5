"""Settings of papers by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PRESETS: dict[str, Mapping[str, Any]] = {}


def preset_values(name: Any) -> Mapping[str, Any]:
    """The settings of a paper; none for None."""
    return PRESETS[name] if name is not None else {}
