"""Settings for imbalanced classes: their values by task, and what they exclude.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from multitask.settings.objective_rules import has_own_loss, smoothing_of
from multitask.settings.settings_by_name import ONE
from tasks.imbalance import Imbalance

if TYPE_CHECKING:
    from multitask.settings.config import RunConfig

SETTINGS = ("class_weights", "focal_gamma", "logit_adjustment")
OWN = "class_weights"  # key of the description of an own task


def value_of(c: RunConfig, key: str, task: str) -> Any:
    """Return a setting of a task; None for one that it does not apply to."""
    value = getattr(c, key)
    if isinstance(value, Mapping):
        return value.get(task)
    return value if c.options_of(task).has_columns else None


def imbalance_of(c: RunConfig, task: str) -> Imbalance | None:
    """Return how a task's loss is changed; None for the plain loss.

    The weights in the description of an own task replace those of the run. Pre-training and probing
    do not train by the tasks' losses.
    """
    if c.mode in ("pretrain", "probe"):  # in which tasks may have the names of objectives
        return None
    weights, gamma, tau = (value_of(c, key, task) for key in SETTINGS)
    weights = c.own_tasks.get(task, {}).get(OWN) or weights
    if not (weights or gamma or tau):
        return None
    return Imbalance(weights, c.effective_beta, gamma or 0.0, tau or 0.0)


def imbalance_rules(c: RunConfig) -> Iterator[str]:
    """Yield what the losses of imbalanced classes cannot be combined with."""
    used = {key: [task for task in c.tasks if value_of(c, key, task)] for key in SETTINGS}
    for key, tasks in used.items():
        value, names = getattr(c, key), ", ".join(c.tasks)
        if value and not isinstance(value, Mapping) and not tasks:
            yield f"{key}: expected a task with classes or several labels, found {names}"
    if c.effective_beta != type(c).effective_beta and "effective" not in [
        value_of(c, "class_weights", task) for task in c.tasks
    ]:
        yield f"effective_beta: expected class_weights effective, found {c.effective_beta}"
    for task in c.tasks:
        given = [key for key in SETTINGS if task in used[key]]
        described = bool(c.own_tasks.get(task, {}).get(OWN))
        if described and isinstance(c.class_weights, Mapping) and task in c.class_weights:
            yield f"class_weights: expected none for {task}, whose description has weights"
        if described and "class_weights" not in given:
            given = ["class_weights", *given]
        for key in given:
            yield from task_rules(c, key, task)
        if "logit_adjustment" in given and len(given) > 1:
            yield f"{given[0]} and logit_adjustment of {task}: {ONE}"


def task_rules(c: RunConfig, key: str, task: str) -> Iterator[str]:
    """Yield what one of the settings, used for a task, cannot be combined with."""
    if not c.options_of(task).has_columns:
        yield f"{key}: expected tasks with classes or several labels, found {task}"
        return
    if task not in c.own_tasks and has_own_loss(c, task):
        yield f"{key} and loss of {task}: {ONE}"
    if smoothing_of(c, task):
        yield f"{key} and label_smoothing of {task}: {ONE}"
    if c.options_of(task).has_classes and c.objective is not None:
        yield f"{key} and objective {c.objective.name}: {ONE}"
    if c.options_of(task).has_classes and c.class_balanced and key != "focal_gamma":
        yield f"{key} and class_balanced: {ONE}, for both correct the numbers of examples"
