"""Tasks: readers, splits and protocols, heads, losses and objectives, metrics, prediction files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tasks.catalog import DECLARED
from tasks.registry import (
    CS224N,
    MANY_CLASSES,
    PAIRS,
    PULL_PUSH,
    TASK_NAMES,
    TASKS,
    TaskOptions,
    build_task,
)

__all__ = [
    "CS224N",
    "DECLARED",
    "MANY_CLASSES",
    "PAIRS",
    "PULL_PUSH",
    "TASKS",
    "TASK_NAMES",
    "TaskOptions",
    "build_task",
]
SAMPLE = "sample"  # the bundled data, as the name of a folder


def task_and_term(objective: str) -> tuple[str, str]:
    """Split `sst/pull` into sst, pull; a task's only objective has an empty term."""
    task, _, term = objective.partition("/")
    return task, term


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return each name once: built-in tasks in their usual order, then own tasks as given."""
    found = dict.fromkeys(names)
    built_in = [name for name in TASK_NAMES if name in found]
    return tuple(dict.fromkeys([*built_in, *found]))


def data_folder(data: str) -> Path:
    """Return the folder with this name or path; `SAMPLE` is the bundled one."""
    return Path(__file__).with_name(SAMPLE) if data == SAMPLE else Path(data)
