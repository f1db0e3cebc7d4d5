"""The tasks of a pre-training run, and what their text shares with data it must not have seen."""

from __future__ import annotations

from multitask.assembly import build_tasks
from multitask.config import RunConfig
from pretrain import supercontext
from pretrain.objectives import build_objective
from pretrain.texts import overlap
from tasks import CS224N, data_folder
from tasks.base import Task
from tasks.readers import limit_of
from tasks.text_files import DataError


def tasks_of(config: RunConfig) -> dict[str, Task]:
    """The tasks of any configuration: those of its name, or the objective of pre-training."""
    if config.mode != "pretrain":
        return build_tasks(config)
    if config.objective in supercontext.OBJECTIVES:
        return supercontext.class_tasks(config)
    return build_objective(config)


def build_and_check(config: RunConfig) -> dict[str, Task]:
    """Tell how much dev and test text is among the training text, then give the tasks."""
    tasks = tasks_of(config)
    folder = data_folder(config.data)
    if config.text is not None and config.data == "sample":
        print("dev is STS of the bundled sample, from templates: it judges little", flush=True)
    examples = [
        task.read(folder, "train", limit_of(config.limit, task.name)) for task in tasks.values()
    ]
    texts = tuple(column for some in examples for column in some.texts)
    # Of pre-training on classes also its own tasks' dev and test, as their files have them.
    own = config.tasks if config.objective in supercontext.OBJECTIVES else ()
    for name in dict.fromkeys((*CS224N, *own)):
        try:
            (shared,) = overlap(texts, folder, [name], config.own_tasks).values()
        except DataError as error:
            print(f"overlap with {name}: unknown ({error})", flush=True)
            continue
        found = ", ".join(f"{count:,} of {split}" for split, count in shared.items())
        print(f"sentences of {name} that the training text holds: {found}", flush=True)
    return tasks
