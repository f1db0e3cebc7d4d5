"""Questions about the tasks of a configuration, answered without building them.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from multitask.flat import has_similarities

if TYPE_CHECKING:
    from multitask.config import RunConfig


def two_vectors(config: RunConfig, task: str) -> bool:
    """Whether the examples of a task are pairs with an embedding for each text."""
    own = config.own_tasks.get(task)
    if own is not None:
        return len(own.get("texts", ())) == 2 and not own.get("joint")
    options = config.options_of(task)
    return options is not None and not options.similarity and options.vectors > 1


def has_classes(config: RunConfig, task: str) -> bool:
    """Whether the labels of a task are classes, not similarities."""
    return not has_similarities(vars(config), task)


def task_objectives(config: RunConfig, task: str) -> tuple[str, ...]:
    """Return the names of the objectives of a task that is trained by its own loss."""
    options = config.options_of(task)
    return (task,) if options is None else options.objectives


def objectives_of(config: RunConfig) -> dict[str, tuple[str, ...]]:
    """Return each task's objectives, as `Task.objectives` gives them."""
    return {
        task: config.objective.terms_of(task)
        if hasattr(config.objective, "terms_of") and has_classes(config, task)
        else task_objectives(config, task)
        for task in config.tasks
    }


def combined_objectives(config: RunConfig) -> list[str]:
    """Return the objectives whose gradients the combiner sees; an objective of tasks may balance
    its own terms.
    """
    if getattr(config.objective, "balance", None) is not None:
        return list(config.tasks)
    return [name for names in objectives_of(config).values() for name in names]


def weights_by_task(config: RunConfig) -> dict[str, Mapping[str, float]]:
    """Return the weights of the regularisers, by the names of their settings."""
    return {f"{one.prefix}weight": one.weights for one in config.regularizers}
