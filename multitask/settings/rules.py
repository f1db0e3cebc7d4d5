"""Rules over several settings, each for a run that would otherwise silently be another one."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from common.settings import default_of
from multitask.combiners.base import WithPreference
from multitask.config_tasks import build_tasks
from multitask.sampling import BeginsWithOneTask
from multitask.settings.config import RunConfig
from tasks import SAME_MEANING
from tasks.objectives import Objective

Rules = Iterator[tuple[object, str]]  # whether a rule is broken, and a sentence about it


def faults(c: RunConfig) -> Iterator[str]:
    """Yield a sentence for each contradiction; one without tasks is a base for others."""
    if c.tasks or c.text_file is not None:
        of_training = of_pretraining(c) if c.pretrains else of_losses(c)
        for several in (of_names(c), of_modes(c), of_training):
            yield from (sentence for broken, sentence in several if broken)


def of_names(c: RunConfig) -> Rules:
    """Yield the rules about names of tasks, which the run must have."""
    first = [one for one in (c.sampling, c.schedule) if isinstance(one, BeginsWithOneTask)]
    named: list[tuple[str, Any]] = [("first_task", {one.first_task}) for one in first]
    named += [(f"{one.prefix}weight", one.weight) for one in c.regularizers]
    for key, several in (*named, ("limit", c.limit)):
        for name in several if isinstance(several, Mapping | set) else ():
            other = name is not None and name not in c.tasks
            yield other, f"{key}: {name} is not among the tasks {', '.join(c.tasks)}"
    differ = len({(one.first_task, one.first_epochs) for one in first}) > 1
    yield differ, f"schedule {c.schedule.name}: give sampling {c.sampling.name} the same first task"


def of_modes(c: RunConfig) -> Rules:
    """Yield the rules about the mode, the protocol and teachers."""
    if c.objective is not None and c.mode:
        other = c.pretrains != c.objective.pretrains
        yield other, f"objective {c.objective.name}: not available in mode {c.mode}"
    for task, one in c.tasks.items() if c.protocol.draws else ():
        without = one.build().kind.classes is None
        yield without, f"protocol {c.protocol.name}: needs tasks with classes, found {task}"
    for term in c.regularizers:
        alone = term.learns_from_teacher and not c.teacher
        yield alone, f"{term.prefix}weight: needs teacher, the runs to learn from"


def of_losses(c: RunConfig) -> Rules:
    """Yield the rules about losses that exclude each other or that no task has."""
    objective: Any = c.objective or Objective()
    named, smooth = f"objective {objective.name}", c.label_smoothing
    built = {name: one.build() for name, one in c.tasks.items()}
    classes = [name for name, one in built.items() if one.kind.classes]
    given: dict[str, object] = {named: c.objective, "class_balanced": c.class_balanced}
    given |= {"label_smoothing": smooth, "class_weights": c.class_weights}
    for what, value in given.items():
        without = value and not classes
        yield without, f"{what}: needs a task with classes, found {', '.join(c.tasks)}"
    for task in classes:
        own_loss, own_head = len(built[task].objectives) > 1, "head" in c.tasks[task].to_json()
        for one, other, both in (
            ("its own loss", "label_smoothing", own_loss and smooth),
            ("its own loss", named, own_loss and c.objective),
            ("label_smoothing", named, objective.own_loss and smooth),
            ("its own head", named, objective.own_head and own_head),
        ):
            yield both, f"{task}: {one} and {other} cannot be combined"
        pair = objective.single_embedding and built[task].vectors > 1
        yield pair, f"{named}: needs single texts, or pairs with pair joint, found {task}"
    frozen = c.objective and c.freeze_encoder and not objective.trains_only_heads
    yield frozen, f"freeze_encoder: not with {named}, which trains the encoder"
    yield from of_combiner(c)


def of_combiner(c: RunConfig) -> Rules:
    """Yield the rules about the preference of a combiner, and where gradients are combined."""
    terms = {name: task.objectives for name, task in build_tasks(c).items()}
    names = [name for several in terms.values() for name in several]
    combined = names if c.balance is None else list(c.tasks)
    if isinstance(c.combiner, WithPreference) and c.combiner.preference is not None:
        wanted = f"needs {len(combined)} numbers, for {', '.join(combined)}"
        yield len(c.combiner.preference) != len(combined), f"preference: {wanted}"
    if c.on_embeddings:
        other = len(terms) > 1 or len(names) < 2 or c.step_batches > 1
        yield other, "gradients representation: needs one task with several objectives, one batch"
        pieces = c.micro_batch and c.regularizers
        yield pieces, "gradients representation: not with both micro_batch and regularizers"
    balanced = c.balance is not None and c.combiner.compares_losses
    yield balanced, f"combiner {c.combiner.name}: not with objective epo"


def of_pretraining(c: RunConfig) -> Rules:
    """Yield what the objective of pre-training needs of its batches and tasks."""
    for one in fields(c):
        has = "pretrain" in one.metadata.get("modes", ("pretrain",))
        given = not has and getattr(c, one.name) != default_of(one)
        yield given, f"{one.name}: not available in mode pretrain"
    objective: Any = c.objective
    if objective is None:
        yield True, "objective: mode pretrain needs one, such as simcse or superloss"
        return
    named = f"objective {objective.name}"
    yield c.text_file and c.tasks, f"tasks: leave them out; the text is {c.text_file}"
    alone = c.batch_size == 1 and objective.compares_examples
    yield alone, "batch_size: must be 2 or more; other examples of a batch are the negatives"
    yield isinstance(c.limit, Mapping), "limit: mode pretrain takes one number for all tasks"
    of_classes = c.class_balanced or c.protocol.name != "files"
    line = f"class_balanced and protocol: need an objective of classes, not {objective.name}"
    yield of_classes and not objective.of_classes, line
    for task, options in c.tasks.items():
        other = objective.of_pairs and task not in SAME_MEANING
        yield other, f"{named}: needs {' or '.join(SAME_MEANING)}, found {task}"
        built = options.build()
        without = objective.of_classes and (built.kind.classes is None or built.vectors > 1)
        yield without, f"{named}: needs single texts with classes, not {task}"
