"""Rules about what tasks are trained by: their own losses, an objective, combined gradients.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from multitask.combiners.base import WithPreference
from multitask.settings.methods import is_default
from multitask.settings.settings_by_name import ONE

if TYPE_CHECKING:
    from multitask.settings.config import RunConfig


def smoothing_of(config: RunConfig, task: str) -> float:
    """Return the label smoothing of a task; 0 for one without classes."""
    share = config.label_smoothing
    if isinstance(share, Mapping):
        return share.get(task, 0.0)
    return share if config.options_of(task).has_classes else 0.0


def has_class_weights(config: RunConfig, task: str) -> bool:
    """Return whether the loss of a task weights its classes or labels."""
    value = config.class_weights
    if isinstance(value, Mapping):
        return task in value
    return value is not None and config.options_of(task).has_columns


def has_own_loss(config: RunConfig, task: str) -> bool:
    """Return whether a task has another loss, by its options, beside cross-entropy."""
    return len(config.options_of(task).objectives) > 1


def objectives_of(config: RunConfig) -> dict[str, tuple[str, ...]]:
    """Return each task's objectives, as `Task.objectives` gives them."""
    objective = config.task_objective
    return {
        task: objective.terms_of(task)
        if objective is not None and config.options_of(task).has_classes
        else config.options_of(task).objectives
        for task in config.tasks
    }


def combined_objectives(config: RunConfig) -> list[str]:
    """Return the objectives whose gradients the combiner sees; an objective of tasks may balance
    its own terms.
    """
    if config.balance is not None:
        return list(config.tasks)
    return [name for names in objectives_of(config).values() for name in names]


def weights_by_task(config: RunConfig) -> dict[str, Mapping[str, float]]:
    """Return the weights of the regularisers, by the names of their settings."""
    return {f"{one.prefix}weight": one.weights for one in config.regularizers}


def task_training_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of objectives, and of where and by what gradients are combined."""
    if not any(c.options_of(task).has_classes for task in c.tasks):
        tasks = ", ".join(c.tasks)
        if c.objective is not None:
            yield f"objective {c.objective.name}: expected a task with classes, found {tasks}"
        if c.class_balanced:
            yield f"class_balanced: expected a task with classes, found {tasks}"
    yield from smoothing_rules(c)
    yield from class_weight_rules(c)
    if c.gradients == "representation":
        yield from representation_rules(c)
    combined = combined_objectives(c)
    if not is_default("combiner", c.combiner):
        yield from combiner_rules(c, combined)
    preference = c.combiner.preference if isinstance(c.combiner, WithPreference) else None
    if preference is not None and len(preference) != len(combined):
        names = ", ".join(combined)
        yield f"preference: expected {len(combined)} numbers, for {names}, found {len(preference)}"


def smoothing_rules(c: RunConfig) -> Iterator[str]:
    """Yield uses of label smoothing other than on the cross-entropy of tasks with classes."""
    name = "label_smoothing"
    smooth = [task for task in c.tasks if smoothing_of(c, task)]
    if c.label_smoothing and not isinstance(c.label_smoothing, Mapping) and not smooth:
        yield f"{name}: expected a task with classes, found {', '.join(c.tasks)}"
    for task in smooth:
        if not c.options_of(task).has_classes:
            yield f"{name}: expected tasks with classes, found {task}"
        if has_own_loss(c, task):
            yield f"{name} and loss of {task}: {ONE}"
    objective = c.task_objective
    if smooth and objective is not None and objective.own_loss:
        yield f"{name} and objective {objective.name}: {ONE}"


def class_weight_rules(c: RunConfig) -> Iterator[str]:
    """Yield uses of class weights other than on the cross-entropy of classes or labels."""
    name = "class_weights"
    weighted = [task for task in c.tasks if has_class_weights(c, task)]
    if c.class_weights is not None and not isinstance(c.class_weights, Mapping) and not weighted:
        found = ", ".join(c.tasks)
        yield f"{name}: expected a task with classes or several labels, found {found}"
    for task in weighted:
        options = c.options_of(task)
        if not options.has_columns:
            yield f"{name}: expected tasks with classes or several labels, found {task}"
        if has_own_loss(c, task):
            yield f"{name} and loss of {task}: {ONE}"
        if smoothing_of(c, task):
            yield f"{name} and label_smoothing of {task}: {ONE}"
        if options.has_classes and c.objective is not None:
            yield f"{name} and objective {c.objective.name}: {ONE}"
        if options.has_classes and c.class_balanced:
            yield f"{name} and class_balanced: {ONE}, for both correct the numbers of examples"


def representation_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of gradients that are combined on the embeddings of one batch."""
    several = objectives_of(c)
    names = [name for terms in several.values() for name in terms]
    line = "gradients representation"
    if len(several) > 1 or len(names) < 2:
        yield f"{line}: expected one task with several objectives, found {', '.join(names)}"
    if c.step_batches > 1:
        yield f"{line}: expected batches_per_step 1, found {c.step_batches}"
    if c.freeze_encoder:
        yield f"{line} and freeze_encoder: {ONE}"
    for one in c.regularizers if c.micro_batch else ():  # they need the batch in one piece
        yield f"{line}, micro_batch and {one.prefix}weight: expected two of them at most"


def combiner_rules(c: RunConfig, combined: list[str]) -> Iterator[str]:
    """Yield what a combiner other than the default needs, such as several objectives in a step."""
    line = f"combiner {c.combiner.name}"
    if len(combined) < 2:
        yield f"{line}: expected two objectives or more, found {', '.join(combined)}"
    balanced = c.balance is not None
    if balanced and not c.combiner.for_balanced:
        yield f"{line}: expected an objective with one loss, found {c.objective.name}"
    terms = [] if balanced else objectives_of(c).values()
    at_once = max((len(names) for names in terms), default=1)
    if c.step_batches == 1 and at_once < 2 and not c.combiner.for_one_objective:
        yield (
            f"{line}: expected steps with two objectives or more, found schedule "
            f"{c.schedule.name} with batches_per_step {c.step_batches}"
        )
    if c.freeze_encoder:
        yield f"{line}: expected a shared encoder, found freeze_encoder"


def objective_rules(c: RunConfig) -> Iterator[str]:
    """Yield what an objective of tasks with classes cannot be combined with."""
    objective = c.task_objective
    if objective is None:
        return
    name = f"objective {objective.name}"
    classes = [task for task in c.tasks if c.options_of(task).has_classes]
    for key in ("freeze_encoder", "probe_epochs"):
        if not objective.trains_only_heads and getattr(c, key):
            yield f"{name} and {key}: {ONE}, for the objective trains more than heads"
    for key, weights in weights_by_task(c).items():
        yield from (f"{name} and {key} of {task}: {ONE}" for task in weights if task in classes)
    for task in classes:
        if has_own_loss(c, task):
            yield f"{name} and loss of {task}: {ONE}"
    for task in classes:
        if objective.own_head and "head" in c.task_options.get(task, {}):
            yield f"task_options: {task}: head: expected another objective than {objective.name}"
    for task in classes:
        if objective.single_embedding and c.options_of(task).vectors > 1:
            yield f"{name}: expected single texts or pair joint, found {task}"
    if objective.initializes_from_names and c.init is not None:
        yield f"label_start names and init: {ONE}"
    if line := objective.batch_fault(c.batch_size):
        yield line
