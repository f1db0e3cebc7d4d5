"""The files of a user's modules."""

from __future__ import annotations

import sys
from pathlib import Path

from minbert_multitask import PACKAGES


def source_of_module(name: str) -> tuple[str, bytes] | None:
    """Return name and content of the file of a user's module in Python; None for other modules."""
    if name.partition(".")[0] in PACKAGES:
        return None
    file = Path(getattr(sys.modules.get(name), "__file__", None) or "")
    return (file.name, file.read_bytes()) if file.suffix == ".py" and file.is_file() else None
