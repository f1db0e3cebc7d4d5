"""Tasks: readers, splits and protocols, heads, losses and objectives, metrics, prediction files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tasks.base import Task
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
OwnTasks = Mapping[
    str, Mapping[str, Any]
]  # name -> a description, as from `TaskDescription.to_json`


def find_task(name: str, own: OwnTasks, **options: str) -> Task:
    """Return the task of this name, from the user's `own` tasks or the built-in ones."""
    if name in own:
        from tasks.own_tasks import build_own_task
        from tasks.task_description import from_json

        return build_own_task(from_json(name, own[name]))
    return build_task(name, **options)


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
