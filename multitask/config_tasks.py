"""The tasks of a configuration: options, protocol, what is held out of train, and objective."""

from dataclasses import replace
from importlib import import_module
from typing import cast

from multitask.settings.config import RunConfig
from tasks import CS224N, build_task
from tasks.base import Task
from tasks.kinds import on_scale
from tasks.objectives import Objective, with_objective, with_smoothing
from tasks.protocols import apply_protocol

PRETRAINING = "pretrain.pretrain_tasks"  # by name, since it depends on this package


def build_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a configuration by name, in its order, with its objective.

    Tasks of pre-training have the name of their objective. `plain_tasks` ignores the objective.
    """
    if config.pretrains:
        return import_module(PRETRAINING).pretraining_tasks(config)
    tasks, objective = plain_tasks(config), cast(Objective | None, config.objective)
    if objective is None:
        return tasks
    return {name: with_objective(task, objective) for name, task in tasks.items()}


def plain_tasks(config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a configuration with their own losses, whatever the objective is.

    This function also works for pre-training, for example to read the files of the tasks.
    """
    course = [build_task(name).source for name in CS224N] if config.drop_leaks == "all" else []
    held_out = tuple(course) if config.drop_leaks else None
    tasks: dict[str, Task] = {}
    for name, options in config.tasks.items():
        task = options.build()
        if task.kind.similarities:
            task = replace(task, kind=on_scale(task.kind, config.similarity_scale))
        if config.label_smoothing and task.kind.classes:
            task = with_smoothing(task, config.label_smoothing)
        source = apply_protocol(task, config.protocol, config.seed, held_out)
        tasks[name] = replace(task, source=source)
    return tasks
