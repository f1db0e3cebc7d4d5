"""Tasks: readers, splits and protocols, heads, losses and objectives, metrics, prediction files."""

from collections.abc import Iterable
from pathlib import Path

from tasks.base import TaskOptions
from tasks.built_in import CS224N, SAME_MEANING, TASK_NAMES, TASKS, build_task

__all__ = ["CS224N", "SAME_MEANING", "TASKS", "TASK_NAMES", "TaskOptions", "build_task"]
SAMPLE = "sample"  # the bundled data, as the name of a folder


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return each name once: built-in tasks in their usual order, then own tasks as given."""
    place = {name: number for number, name in enumerate(TASK_NAMES)}
    return tuple(sorted(dict.fromkeys(names), key=lambda name: place.get(name, len(place))))


def data_folder(data: str) -> Path:
    """Return the folder with this name or path; `SAMPLE` is the bundled one."""
    return Path(__file__).with_name(SAMPLE) if data == SAMPLE else Path(data)
