"""Rules over several settings, each for a run that would otherwise silently be another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from common.settings import build, default_of
from multitask.combiners.base import WithPreference
from multitask.combiners.sum import Sum
from multitask.settings.config import RunConfig
from multitask.settings.methods import task_classes
from tasks.registry import SAME_MEANING, TaskOptions


def faults(c: RunConfig) -> Iterator[str]:
    """Yield a sentence for each contradiction; one without tasks is a base for others."""
    yield from task_faults(c)
    if not c.tasks and c.text_file is None:
        return
    yield from mode_faults(c)
    yield from length_faults(c)
    yield from example_faults(c)
    if c.pretrains:
        yield from pretraining_faults(c)
    else:
        yield from loss_faults(c)
        yield from combiner_faults(c)


def task_faults(c: RunConfig) -> Iterator[str]:
    """Yield unknown and repeated tasks, and settings of tasks that the run does not have."""
    known = (*task_classes(), *c.own_tasks)
    for name in c.tasks:
        if name not in known:
            yield f"tasks: no task {name!r}; there are {', '.join(known)}"
        if c.tasks.count(name) > 1:
            yield f"tasks: {name} is there twice"
    by_task: dict[str, Any] = {
        "auxiliary": c.auxiliary,
        "branch_only": c.branch_only,
        "task_options": c.task_options,
        "first_task": [first.task] if (first := c.first()) and first.task else [],
        **{f"{one.prefix}weight": one.weight for one in c.regularizers},
        **{key: getattr(c, key) for key in ("limit", "label_smoothing", "class_weights")},
    }
    for key, names in by_task.items():
        for name in names if isinstance(names, Mapping | list | tuple) and c.tasks else ():
            if name not in c.tasks:
                yield f"{key}: {name} is not among the tasks {', '.join(c.tasks)}"
    for name, options in c.task_options.items():
        build("task_options", TaskOptions, {"name": name, **options})
    if c.tasks and not c.main_tasks:
        yield "auxiliary: at least one task must not be auxiliary"


def mode_faults(c: RunConfig) -> Iterator[str]:
    """Yield settings and objectives that the mode does not have."""
    if c.mode == "single" and len(c.tasks) != 1:
        yield f"mode single trains one task, found {', '.join(c.tasks)}"
    if c.pretrains:
        for one in fields(c):
            has = "pretrain" in one.metadata.get("modes", ("pretrain",))
            if not has and getattr(c, one.name) != default_of(one):
                yield f"{one.name}: mode pretrain does not have it"
        if c.objective is None or not c.objective.pretrains:
            yield "objective: mode pretrain needs one of its own, such as simcse or superloss"
        if c.text_file is not None and c.tasks:
            yield f"tasks: none with {c.text_file}, whose text is used"
    elif c.mode and c.objective is not None and c.objective.pretrains:
        yield f"objective {c.objective.name} is of mode pretrain, found mode {c.mode}"


def length_faults(c: RunConfig) -> Iterator[str]:
    """Yield first epochs that leave none for the rest of the run."""
    if c.probe_epochs >= c.epochs:
        yield f"probe_epochs: must be fewer than epochs {c.epochs}, found {c.probe_epochs}"
    first = c.first()
    if first and (first.epochs or 0) >= c.epochs:
        yield f"first_epochs: must be fewer than epochs {c.epochs}, found {first.epochs}"
    if first and len(c.tasks) < 2:
        yield f"first_task: needs two tasks or more, found {', '.join(c.tasks)}"
    if c.schedule.one_batch and (c.batches_per_step or 1) > 1:
        yield f"batches_per_step: schedule {c.schedule.name} takes 1, found {c.batches_per_step}"
    if c.branch is None and c.branch_only:
        yield "branch_only: needs branch, the number of layers"


def example_faults(c: RunConfig) -> Iterator[str]:
    """Yield protocols that the tasks cannot have."""
    if c.protocol.counts_examples and c.limit is not None:
        yield f"limit: protocol {c.protocol.name} sets the number of examples by shots"
    for task in c.tasks if c.protocol.counts_examples else ():
        if not c.options_of(task).has_classes:
            yield f"protocol {c.protocol.name}: needs tasks with classes, found {task}"
    learning = [one for one in c.regularizers if one.learns_from_teacher]
    if learning and not c.teacher:
        yield f"{learning[0].prefix}weight: needs teacher, the runs to learn from"
    yield from filter(None, (one.precision_fault(c.precision) for one in c.regularizers))


def loss_faults(c: RunConfig) -> Iterator[str]:
    """Yield losses that exclude each other, and settings of losses that no task has."""
    objective = c.task_objective
    options = {task: c.options_of(task) for task in c.tasks}
    classes = [task for task, one in options.items() if one.has_classes]
    wanted = {
        f"objective {objective.name if objective else ''}": objective is not None,
        "class_balanced": c.class_balanced,
        "label_smoothing": bool(c.label_smoothing),
    }
    for what, given in wanted.items():
        if given and not classes:
            yield f"{what}: needs a task with classes, found {', '.join(c.tasks)}"
    if c.class_weights and not any(one.has_columns for one in options.values()):
        yield f"class_weights: needs a task with classes or labels, found {', '.join(c.tasks)}"
    for task, one in options.items():
        losses = {
            "its own loss": len(one.objectives) > 1,
            "label_smoothing": smoothing_of(c, task) > 0,
            "class_weights": has_class_weights(c, task),
            f"objective {objective.name if objective else ''}": objective is not None
            and one.has_classes,
        }
        found = [name for name, there in losses.items() if there]
        plain = objective is not None and not objective.own_loss
        if len(found) > 1 and not (plain and found[:-1] == ["label_smoothing"]):
            yield f"{task}: {' and '.join(found)} exclude each other"
    if objective is None:
        return
    for regularizer in c.regularizers:
        for task in set(regularizer.by_task(c.tasks)) & {*classes}:
            key = f"{regularizer.prefix}weight"
            yield f"{key} of {task}: not with objective {objective.name}; give the others TASK=W"
    for task in classes:
        if objective.own_head and c.task_options.get(task, {}).get("head"):
            yield f"{task}: objective {objective.name} has its own head"
        if objective.single_embedding and options[task].vectors > 1:
            yield f"objective {objective.name}: needs single texts or pair joint, found {task}"
    if not objective.trains_only_heads and c.freeze_encoder:
        yield f"freeze_encoder: objective {objective.name} trains the encoder"
    yield from filter(None, [objective.batch_fault(c.batch_size)])


def combiner_faults(c: RunConfig) -> Iterator[str]:
    """Yield combiners that have nothing to combine, and a preference of another length."""
    terms = objectives_of(c)
    names = [name for several in terms.values() for name in several]
    combined = list(c.tasks) if c.balance is not None else names
    preference = c.combiner.preference if isinstance(c.combiner, WithPreference) else None
    if preference is not None and len(preference) != len(combined):
        yield f"preference: needs {len(combined)} numbers, for {', '.join(combined)}"
    if c.on_embeddings and (len(terms) > 1 or len(names) < 2 or c.step_batches > 1):
        yield "gradients representation: needs steps with one batch and its several objectives"
    if c.on_embeddings and c.micro_batch and c.regularizers:
        yield "gradients representation: regularizers need the batch in one piece, no micro_batch"
    if isinstance(c.combiner, Sum):
        return
    line = f"combiner {c.combiner.name}"
    at_once = 1 if c.balance is not None else max(map(len, terms.values()), default=1)
    alone = c.step_batches == 1 and at_once < 2 and not c.combiner.for_one_objective
    if len(combined) < 2 or alone:
        yield f"{line}: has nothing to combine, since each step has one objective"
    if c.balance is not None and not c.combiner.for_balanced:
        yield f"{line}: not with objective {c.objective.name if c.objective else ''}"
    if c.freeze_encoder and c.branch is None:
        yield f"{line}: has nothing to combine with freeze_encoder"


def pretraining_faults(c: RunConfig) -> Iterator[str]:
    """Yield what the objective of pre-training needs of its batches and tasks."""
    objective = c.pretraining_objective
    if c.batch_size == 1 and objective.compares_examples:
        yield "batch_size: must be 2 or more, for the others of a batch are negatives"
    if isinstance(c.limit, Mapping):
        yield "limit: mode pretrain has one for all tasks"
    if not objective.of_classes and (c.class_balanced or c.protocol.name != "files"):
        yield f"class_balanced and protocol: need an objective of classes, not {objective.name}"
    for task in c.tasks:
        if objective.of_pairs and task not in SAME_MEANING:
            yield f"objective {objective.name}: needs {' or '.join(SAME_MEANING)}, found {task}"
        one = c.options_of(task)
        if objective.of_classes and (not one.has_classes or one.vectors > 1):
            yield f"objective {objective.name}: needs single texts with classes, not {task}"
    yield from objective.length_faults(c.epochs)


def smoothing_of(c: RunConfig, task: str) -> float:
    """Return the label smoothing of a task; 0 for one without classes."""
    if isinstance(c.label_smoothing, Mapping):
        return c.label_smoothing.get(task, 0.0)
    return c.label_smoothing if c.options_of(task).has_classes else 0.0


def has_class_weights(c: RunConfig, task: str) -> bool:
    """Return whether the loss of a task weights its classes or labels."""
    if isinstance(c.class_weights, Mapping):
        return task in c.class_weights
    return c.class_weights is not None and c.options_of(task).has_columns


def objectives_of(c: RunConfig) -> dict[str, tuple[str, ...]]:
    """Return each task's objectives, as `Task.objectives` gives them."""
    objective = c.task_objective
    return {
        task: objective.terms_of(task)
        if objective is not None and c.options_of(task).has_classes
        else c.options_of(task).objectives
        for task in c.tasks
    }
