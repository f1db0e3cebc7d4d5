"""What is learned: readers, heads, losses, metrics and prediction files of each task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks import catalog
from tasks.options import QQP, SST, STS, TaskOptions, table_task

if TYPE_CHECKING:
    from tasks.base import Task

OwnTasks = Mapping[str, Mapping[str, Any]]  # name -> a description as `Described.to_json` gives it

CS224N = ("sst", "qqp", "sts")  # BEES' three, which are meant where no task is named
DECLARED = catalog.GLUE | catalog.CLUE
GLUE, CLUE = tuple(catalog.GLUE), tuple(catalog.CLUE)
SIMILARITIES = ("sts",)  # of numbers, not of classes
# Whose texts may share a sequence.
PAIRS = ("qqp", *(name for name, declared in DECLARED.items() if len(declared.texts) == 2))
REVIEWS = {"cfimdb": 2, **{name: len(one.names) for name, one in catalog.REVIEWS.items()}}
CLASSES = {name: len(one.labels) for name, one in DECLARED.items()} | REVIEWS
# The first ones of more than two classes can be asked for.
MANY_CLASSES = {name: classes for name, classes in CLASSES.items() if classes > 2}
# Objectives of a task whose contrastive terms are kept apart (SCL-MOO).
PULL_PUSH = ("cross_entropy", "pull", "push")


def declared(name: str, **options: str) -> Task:
    """A task of GLUE or CLUE."""
    from tasks.catalog_tasks import declared_task

    return declared_task(name, **options)


def review(name: str, **options: str) -> Task:
    """A task of reviews."""
    from tasks.catalog_tasks import MAKERS

    return MAKERS[name](**options)


TASKS: dict[str, type[TaskOptions]] = {
    **{one.name: one for one in (SST, QQP, STS)},
    **{
        name: table_task(name, len(d.texts), len(d.labels), declared)
        for name, d in DECLARED.items()
    },
    **{name: table_task(name, 1, classes, review) for name, classes in REVIEWS.items()},
}
TASK_NAMES = tuple(TASKS)  # all there are


def build_task(name: str, **options: str) -> Task:
    """The task of this name; `options` are its own, such as `head` and, for sts, `activation`."""
    return TASKS[name](**options).build()


def find_task(name: str, own: OwnTasks, **options: str) -> Task:
    """The task of this name, among somebody's `own` tasks or the built-in ones."""
    if name in own:
        from tasks.described import from_json
        from tasks.own import own_task

        return own_task(from_json(name, own[name]))
    return build_task(name, **options)


def task_and_term(objective: str) -> tuple[str, str]:
    """`sst/pull` -> sst, pull; the term of a task's only objective has no name."""
    task, _, term = objective.partition("/")
    return task, term


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once: built-in tasks in their usual order, then own ones as they come."""
    found = dict.fromkeys(names)
    built_in = [name for name in TASK_NAMES if name in found]
    return tuple(dict.fromkeys([*built_in, *found]))


def data_folder(data: str) -> Path:
    """The folder of `--data`; `sample` is the bundled one."""
    return Path(__file__).with_name("sample") if data == "sample" else Path(data)
