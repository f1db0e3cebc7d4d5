"""The one progress bar: live in a terminal, a line a while in a log."""

from __future__ import annotations

import sys
from typing import Any


def bar(what: str, unit: str, total: int | None) -> Any:
    """Counts `unit`s, with their rate and the time left; None for `total` shows nothing."""
    from tqdm import tqdm

    interactive = sys.stderr.isatty()
    return tqdm(
        total=total,
        desc=what,
        unit=unit,
        disable=total is None,
        dynamic_ncols=interactive,
        mininterval=0.5 if interactive else 30,
        maxinterval=10 if interactive else 60,
    )
