"""Files that are never half there."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(file: Path, text: str) -> None:
    """Write UTF-8, with line breaks as they are, under a temporary name, then rename."""
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text, "utf-8", newline="\n")
    os.replace(temporary, file)
