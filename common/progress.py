"""The progress bar, live in a terminal, an occasional line in a log; which process prints."""

import os
import sys
from typing import Any


def bar(what: str, unit: str, total: int | None, passing: bool = False) -> Any:
    """Return a bar that counts `unit`s, with rate and time left; it is hidden if `total` is None.

    A `passing` bar disappears at the end and is not shown in a log.
    """
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    hidden = total is None or (passing and not terminal) or not is_main_process()
    pace = {"mininterval": 0.5 if terminal else 30, "dynamic_ncols": terminal}
    return tqdm(total=total, desc=what, unit=unit, disable=hidden, leave=not passing, **pace)


def is_main_process() -> bool:
    """Return whether this process prints: the first process of torchrun, or the only one."""
    return os.environ.get("RANK", "0") == "0"
