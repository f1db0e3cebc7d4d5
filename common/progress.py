"""What is shown on the way: the one progress bar, live in a terminal, a line a while in a log."""

from __future__ import annotations

import os
import sys
from typing import Any


def is_main_process() -> bool:
    """Whether this process prints: the first one that torchrun started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def bar(what: str, unit: str, total: int | None, passing: bool = False) -> Any:
    """Counts `unit`s, with their rate and the time left; None for `total` shows nothing.

    A `passing` one goes away when done and is left out of a log.
    """
    from tqdm import tqdm

    interactive = sys.stderr.isatty()
    hidden = total is None or (passing and not interactive) or not is_main_process()
    return tqdm(
        total=total,
        desc=what,
        unit=unit,
        disable=hidden,
        leave=not passing,
        dynamic_ncols=interactive,
        mininterval=0.5 if interactive else 30,
        maxinterval=10 if interactive else 60,
    )
