"""Which of the processes that torchrun started this one is."""

from __future__ import annotations

import os


def is_main_process() -> bool:
    """Return whether this process prints: the first process of torchrun, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def several_processes() -> bool:
    """Return whether torchrun started more processes than this one."""
    return os.environ.get("WORLD_SIZE", "1") != "1"
