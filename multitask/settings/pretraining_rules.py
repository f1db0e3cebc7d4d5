"""Rules of pre-training: what its objective has no use for, and what it needs of the tasks.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Any

from multitask.settings.methods import is_default
from tasks.registry import SAME_MEANING

if TYPE_CHECKING:
    from multitask.settings.config import RunConfig


def head_rate_rules(c: RunConfig, given: Container[str]) -> Iterator[str]:
    """Yield a rate of heads in pre-training that has no layer beside the encoder."""
    objective = c.pretraining_objective
    layers = objective is not None and objective.adds_layer
    layers = layers or not is_default("projection_head", c.projection_head)
    if "head_lr" in given and not layers:
        line = "expected setting projection or projection_head, the only layers beside the encoder"
        yield f"head_lr: {line}"


def pretraining_rules(c: RunConfig) -> Iterator[str]:
    """Yield settings that pre-training does not use, and those that its objective lacks."""
    objective = c.pretraining_objective
    without_classes = objective is not None and not objective.of_classes
    name = c.objective.name if c.objective is not None else None
    if without_classes and not is_default("projection_head", c.projection_head):
        yield f"projection_head: expected an objective of classes, found {name}"
    if c.batch_size == 1 and objective is not None and objective.compares_examples:
        yield "batch_size: expected 2 or more, for the others of a batch are negatives, found 1"
    if isinstance(c.limit, dict):
        yield "limit: expected one for all tasks in mode pretrain, found one by task"
    if without_classes:
        line = f"expected an objective of classes, found {name}"
        yield from (f"{key}: {line}" for key in settings_of_classes(c))
    if objective is not None:
        yield from pretraining_task_rules(c, objective)


def settings_of_classes(c: RunConfig) -> Iterator[str]:
    """Yield the settings given that only an objective of classes can use."""
    if not is_default("protocol", c.protocol):
        yield "protocol"
    yield from (key for key in ("class_balanced", "drop_leaks") if getattr(c, key))
    if c.task_options and not any(c.task_options.values()):
        yield "task_options"
    for task, chosen in c.task_options.items():
        yield from (f"task_options: {task}: {option}" for option in chosen)


def pretraining_task_rules(c: RunConfig, objective: Any) -> Iterator[str]:
    """Yield what the objective of pre-training needs of the tasks whose texts it reads."""
    for task in c.tasks:
        if objective.of_pairs and objective.file is None and task not in SAME_MEANING:
            names = " or ".join(SAME_MEANING)
            yield f"tasks: expected {names} with objective {objective.name}, found {task}"
        if objective.of_classes and not c.options_of(task).has_classes:
            yield f"objective {objective.name}: expected tasks with classes, found {task}"
        if objective.of_classes and c.options_of(task).vectors > 1:
            line = "expected single texts or pair joint"
            yield f"objective {objective.name}: {line}, found {task}"
