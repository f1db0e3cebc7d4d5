"""Rules over several settings, each for a run that would otherwise silently be another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from common.settings import default_of
from multitask.combiners.base import WithPreference
from multitask.combiners.loss_weights import Sum
from multitask.sampling import BeginsWithOneTask
from multitask.settings.config import RunConfig
from tasks import SAME_MEANING
from tasks.objectives import with_objective

Rules = Iterator[tuple[object, str]]  # whether a rule is broken, and a sentence about it


def faults(c: RunConfig) -> Iterator[str]:
    """Yield a sentence for each contradiction; one without tasks is a base for others."""
    yield from names_of_tasks(c)
    if c.tasks or c.text_file is not None:
        for several in (of_modes(c), of_pretraining(c) if c.pretrains else of_losses(c)):
            yield from (sentence for broken, sentence in several if broken)


def names_of_tasks(c: RunConfig) -> Iterator[str]:
    """Yield settings of tasks that the run does not have."""
    named = (getattr(one, "first_task", None) for one in (c.sampling, c.schedule))
    by_task: dict[str, Any] = {
        "first_task": [*filter(None, named)],
        **{f"{one.prefix}weight": one.weight for one in c.regularizers},
    }
    by_task["limit"] = c.limit
    for key, names in by_task.items():
        for name in names if isinstance(names, Mapping | list | tuple) and c.tasks else ():
            if name not in c.tasks:
                yield f"{key}: {name} is not among the tasks {', '.join(c.tasks)}"


def of_modes(c: RunConfig) -> Rules:
    """Yield the rules about the mode, and about settings that need others."""
    if c.objective is not None and c.mode:
        other = c.pretrains != c.objective.pretrains
        yield other, f"objective {c.objective.name}: mode {c.mode} does not have it"
    for task in c.tasks if c.protocol.draws else ():
        without = c.tasks[task].build().kind.classes is None
        yield without, f"protocol {c.protocol.name}: needs tasks with classes, found {task}"
    first = [one for one in (c.sampling, c.schedule) if isinstance(one, BeginsWithOneTask)]
    differ = len({(one.first_task, one.first_epochs) for one in first}) > 1
    yield differ, f"schedule {c.schedule.name}: sampling {c.sampling.name} has another first task"
    for one in c.regularizers:
        alone = one.learns_from_teacher and not c.teacher
        yield alone, f"{one.prefix}weight: needs teacher, the runs to learn from"


def of_losses(c: RunConfig) -> Rules:
    """Yield the rules about losses that exclude each other or that no task has."""
    objective, found = c.task_objective, ", ".join(c.tasks)
    built = {name: one.build() for name, one in c.tasks.items()}
    classes = [name for name, one in built.items() if one.kind.classes]
    named = f"objective {objective.name}" if objective else ""
    given: dict[str, object] = {named: objective, "class_balanced": c.class_balanced}
    given |= {"label_smoothing": c.label_smoothing, "class_weights": c.class_weights}
    for what in (key for key, value in given.items() if value and not classes):
        yield True, f"{what}: needs a task with classes, found {found}"
    for task in classes:
        own_loss, smooth = len(built[task].objectives) > 1, c.label_smoothing
        yield own_loss and smooth, f"{task}: its own loss and label_smoothing exclude each other"
        if objective is None:
            continue
        excluded = {
            "its own loss": own_loss,
            "class_weights": c.class_weights,
            "label_smoothing": objective.own_loss and smooth,
            "its own head": objective.own_head and "head" in c.tasks[task].to_json(),
        }
        for what in (key for key, there in excluded.items() if there):
            yield True, f"{task}: {what} and {named} exclude each other"
        pairs = objective.single_embedding and built[task].vectors > 1
        yield pairs, f"{named}: needs single texts or pair joint, found {task}"
    if objective is not None:
        frozen = c.freeze_encoder and not objective.trains_only_heads
        yield frozen, f"freeze_encoder: {named} trains the encoder"
    yield from of_combiner(c)


def of_combiner(c: RunConfig) -> Rules:
    """Yield the rules about a combiner that has nothing to combine, and about its preference."""
    terms = objectives_of(c)
    names = [name for several in terms.values() for name in several]
    combined = list(c.tasks) if c.balance is not None else names
    if isinstance(c.combiner, WithPreference) and c.combiner.preference is not None:
        wanted = f"needs {len(combined)} numbers, for {', '.join(combined)}"
        yield len(c.combiner.preference) != len(combined), f"preference: {wanted}"
    if c.on_embeddings:
        other = len(terms) > 1 or len(names) < 2 or c.step_batches > 1
        yield other, "gradients representation: needs steps with one batch of several objectives"
        pieces = c.micro_batch and c.regularizers
        yield pieces, "gradients representation: not with micro_batch and regularizers"
    if not isinstance(c.combiner, Sum):
        line = f"combiner {c.combiner.name}"
        at_once = 1 if c.balance is not None else max(map(len, terms.values()), default=1)
        alone = c.step_batches == 1 and at_once < 2 and not c.combiner.for_one_objective
        alone = alone or len(combined) < 2 or (c.freeze_encoder and c.branch is None)
        yield alone, f"{line}: has nothing to combine, since each step has one gradient"
        balanced = c.balance is not None and c.combiner.compares_losses
        yield balanced, f"{line}: not with objective {c.objective.name if c.objective else ''}"


def of_pretraining(c: RunConfig) -> Rules:
    """Yield what the objective of pre-training needs of its batches and tasks."""
    for one in fields(c):
        has = "pretrain" in one.metadata.get("modes", ("pretrain",))
        given = not has and getattr(c, one.name) != default_of(one)
        yield given, f"{one.name}: mode pretrain does not have it"
    if (objective := c.pretraining_objective) is None:
        yield True, "objective: mode pretrain needs one of its own, such as simcse or superloss"
        return
    named = f"objective {objective.name}"
    yield c.text_file and c.tasks, f"tasks: none with {c.text_file}, whose text is used"
    alone = c.batch_size == 1 and objective.compares_examples
    yield alone, "batch_size: must be 2 or more, for the others of a batch are negatives"
    yield isinstance(c.limit, Mapping), "limit: mode pretrain has one for all tasks"
    of_classes = c.class_balanced or c.protocol.name != "files"
    line = f"class_balanced and protocol: need an objective of classes, not {objective.name}"
    yield of_classes and not objective.of_classes, line
    for task in c.tasks:
        other = objective.of_pairs and task not in SAME_MEANING
        yield other, f"{named}: needs {' or '.join(SAME_MEANING)}, found {task}"
        built = c.tasks[task].build()
        without = objective.of_classes and (built.kind.classes is None or built.vectors > 1)
        yield without, f"{named}: needs single texts with classes, not {task}"


def objectives_of(c: RunConfig) -> dict[str, tuple[str, ...]]:
    """Return each task's objectives, as `Task.objectives` gives them."""
    objective = c.task_objective
    return {
        name: (with_objective(one.build(), objective) if objective else one.build()).objectives
        for name, one in c.tasks.items()
    }
