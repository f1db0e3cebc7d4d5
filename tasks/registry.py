"""The built-in tasks by name, and the groups that they form. No torch is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasks import catalog
from tasks.catalog import DECLARED
from tasks.options import QQP, SST, STS, TaskOptions, table_task

if TYPE_CHECKING:
    from tasks.base import Task

CS224N = ("sst", "qqp", "sts")  # the tasks of BEES, which are the default
GLUE, CLUE = tuple(catalog.GLUE), tuple(catalog.CLUE)
SIMILARITIES = ("sts",)  # tasks that predict numbers, not classes
REVIEWS = {"cfimdb": 2, **{name: len(one.names) for name, one in catalog.REVIEWS.items()}}
CLASSES = {name: len(one.labels) for name, one in DECLARED.items()} | REVIEWS
# Tasks that may be restricted to their first classes.
MANY_CLASSES = {name: classes for name, classes in CLASSES.items() if classes > 2}
# Objectives of a task with separate contrastive terms (SCL-MOO).
PULL_PUSH = ("cross_entropy", "pull", "push")


def declared(name: str, **options: str) -> Task:
    """Return a task of GLUE or CLUE."""
    from tasks.catalog_tasks import declared_task

    return declared_task(name, **options)


def review(name: str, **options: str) -> Task:
    """Return a task on reviews or topics."""
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
TASK_NAMES = tuple(TASKS)


def build_task(name: str, **options: str) -> Task:
    """Return a built-in task with its options, such as `head` and, for sts, `activation`."""
    return TASKS[name](**options).build()
