"""Tasks: their readers, heads, losses, metrics and prediction files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tasks import catalog
from tasks.options import QQP, SST, STS, TaskOptions, table_task

if TYPE_CHECKING:
    from tasks.base import Task

OwnTasks = Mapping[str, Mapping[str, Any]]  # name -> a description, as from `Described.to_json`

CS224N = ("sst", "qqp", "sts")  # the tasks of BEES, which are the default
DECLARED = catalog.GLUE | catalog.CLUE
GLUE, CLUE = tuple(catalog.GLUE), tuple(catalog.CLUE)
SIMILARITIES = ("sts",)  # tasks that predict numbers, not classes
# Tasks whose pairs of texts may be encoded as one sequence.
PAIRS = ("qqp", *(name for name, declared in DECLARED.items() if len(declared.texts) == 2))
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


def find_task(name: str, own: OwnTasks, **options: str) -> Task:
    """Return the task of this name, from the user's `own` tasks or the built-in ones."""
    if name in own:
        from tasks.described import from_json
        from tasks.own import own_task

        return own_task(from_json(name, own[name]))
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
    """Return the folder of `--data`; `sample` is the bundled one."""
    return Path(__file__).with_name("sample") if data == "sample" else Path(data)
