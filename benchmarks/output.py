"""Files of measured figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.environment import environment
from common.json_files import write_json


def write_figures(file: Path | None, content: Mapping[str, Any], device: str = "cpu") -> None:
    """Write measured figures with the machine and the date as JSON, if a file is named."""
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {"environment": environment(device), **content})
