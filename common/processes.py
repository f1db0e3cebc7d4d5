"""Which of the processes that torchrun started this one is."""

import os


def is_main_process() -> bool:
    """Return whether this process prints: the first process of torchrun, or the only one."""
    return os.environ.get("RANK", "0") == "0"
