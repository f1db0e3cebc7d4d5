"""The folder of what this program measures once per machine or per encoder."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the path under `$XDG_CACHE_HOME` if that is absolute, else under `~/.cache`."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    home = home if os.path.isabs(home) else os.path.expanduser("~/.cache")
    return Path(home) / "minbert"
