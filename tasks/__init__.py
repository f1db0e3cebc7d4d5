"""What is learned: readers, heads, losses, metrics and prediction files of each task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tasks.base import Task

CS224N = ("sst", "qqp", "sts")  # BEES' three, which are meant where no task is named
TASK_NAMES = CS224N  # all there are


def build_task(name: str, **options: str) -> Task:
    """The task of this name; `options` are its own, such as `head` and, for sts, `activation`."""
    from tasks.qqp import qqp
    from tasks.sst import sst
    from tasks.sts import sts

    return {"sst": sst, "qqp": qqp, "sts": sts}[name](**options)


def data_folder(data: str) -> Path:
    """The folder of `--data`; `sample` is the bundled one."""
    return Path(__file__).with_name("sample") if data == "sample" else Path(data)
