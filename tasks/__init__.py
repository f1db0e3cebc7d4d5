"""Tasks: readers, splits and protocols, heads, losses and objectives, metrics, prediction files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tasks.base import TaskOptions
from tasks.built_in import CS224N, PAIRS, SAME_MEANING, TASK_NAMES, TASKS, WITH_CLASSES, build_task
from tasks.catalog import DATA_SETS

__all__ = [
    "CS224N",
    "DATA_SETS",
    "PAIRS",
    "PULL_PUSH",
    "SAME_MEANING",
    "TASKS",
    "TASK_NAMES",
    "WITH_CLASSES",
    "TaskOptions",
    "build_task",
]
SAMPLE = "sample"  # the bundled data, as the name of a folder
# Objectives of a task with separate contrastive terms (SCL-MOO).
PULL_PUSH = ("cross_entropy", "pull", "push")


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
