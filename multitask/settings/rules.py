"""Rules over several settings of a run: one sentence for each contradiction.

A method's class checks its own settings. Rules about objectives are in
`objective_rules.py`, those of pre-training in `pretraining_rules.py`, those of modes in
`mode_rules.py`. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from os.path import abspath
from typing import TYPE_CHECKING, Any

from common.errors import SettingsError
from common.repeats import repeated
from common.settings import short_repr
from common.suggestions import suggestion
from multitask.optimizer import Optimizer
from multitask.regularizers import Distillation
from multitask.settings.following_defaults import UNSCALED, has_similarities
from multitask.settings.methods import methods, owners
from multitask.settings.methods_by_name import owner_of
from multitask.settings.mode_rules import mode_rules
from multitask.settings.objective_rules import (
    objective_rules,
    task_training_rules,
    weights_by_task,
)
from multitask.settings.pretraining_rules import head_rate_rules, pretraining_rules
from multitask.settings.settings_by_name import ONE
from tasks import TaskOptions
from tasks.objectives import Objective

if TYPE_CHECKING:
    from multitask.settings.config import RunConfig


def faults(c: RunConfig) -> Iterator[str]:
    """Yield a sentence for each contradiction between settings of a configuration.

    A configuration without anything to train on serves as a base for others: only its task names
    are checked.
    """
    yield from task_name_rules(c)
    if not c.tasks and c.text_file is None:
        return
    yield from mode_rules(c)
    yield from length_rules(c)
    yield from example_rules(c)
    yield from task_rules(c)
    yield from mixing_rules(c)
    yield from teacher_rules(c)
    yield from pretraining_rules(c) if c.pretrains else task_training_rules(c)
    yield from objective_rules(c)


def length_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of how long a run takes, what it trains, and which epoch it keeps."""
    if c.keep == "last" and c.patience:
        yield f"keep last and patience: {ONE}"
    if c.probe_epochs and c.freeze_encoder:
        yield f"probe_epochs and freeze_encoder: {ONE}"
    if c.probe_epochs >= c.epochs:
        yield f"probe_epochs: expected fewer than epochs {c.epochs}, found {c.probe_epochs}"
    first = c.first()
    if first and c.probe_epochs:
        yield "probe_epochs: expected all tasks in the first epochs, found one task only"
    if first and first.epochs >= c.epochs:
        yield f"first_epochs: expected fewer than epochs {c.epochs}, found {first.epochs}"
    if c.pretraining_objective is not None:
        yield from c.pretraining_objective.length_faults(c.epochs)
    yield from filter(None, (one.precision_fault(c.precision) for one in c.regularizers))
    if c.branch is not None and c.probe_epochs:
        yield f"branch and probe_epochs: {ONE}"
    if c.branch is None and c.branch_only:
        yield "branch_only: expected setting branch, found none"
    yield from not_among_tasks(c, "branch_only", c.branch_only)
    yield from frozen_rules(c, further_rates(c))
    if c.freeze_encoder and c.branch is None:
        yield from (f"{weight} and freeze_encoder: {ONE}" for weight in weights_by_task(c))


def further_rates(c: RunConfig) -> list[str]:
    """Return the settings that change the rates of an encoder's parts, if they are not defaults.

    The rate `lr` itself is that of every run.
    """
    chosen = c.optimizer.other_than_defaults()
    return [
        key for key in c.optimizer.of_encoder if key not in Optimizer.of_encoder and key in chosen
    ]


def frozen_rules(c: RunConfig, given: Container[str]) -> Iterator[str]:
    """Yield the settings among those `given` of how an encoder is trained, if it is not."""
    for key in c.optimizer.of_encoder:
        if c.freeze_encoder and key in given:
            yield f"freeze_encoder and {key}: expected only head_lr"


def example_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of which examples are used, and on which scale their labels are."""
    unclassed = [task for task in c.tasks if not c.options_of(task).has_classes]
    if c.protocol.counts_examples and c.limit is not None:
        yield f"limit and shots: {ONE}"
    for key in ("limit", "label_smoothing", "class_weights"):
        value = getattr(c, key)
        yield from not_among_tasks(c, key, value if isinstance(value, dict) else ())
    if c.protocol.counts_examples and unclassed:
        names = ", ".join(unclassed)
        yield f"protocol {c.protocol.name}: expected tasks with classes, found {names}"
    if c.leaks_of != "all" and not c.drop_leaks:
        yield f"leaks_of: expected drop_leaks, found {c.leaks_of!r} without it"
    similar = any(has_similarities(vars(c), task) for task in c.tasks)
    if c.similarity_scale != UNSCALED and not c.pretrains and not similar:
        yield f"similarity_scale: expected a task of similarities, found {', '.join(c.tasks)}"


def task_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of the number of tasks, and of what is set by task."""
    tasks = ", ".join(c.tasks)
    if c.tasks and c.text_file is not None:
        yield f"tasks: expected none with {c.text_file}, whose text is used, found {tasks}"
    if c.mode == "single" and len(c.tasks) != 1:
        yield f"tasks: expected one in mode single, found {tasks}"
    if c.tasks and not c.main_tasks:
        yield f"auxiliary: expected a task that is not auxiliary, found only {tasks}"
    for key, what in (("auxiliary", "task"), ("teacher", "run")):
        several = getattr(c, key)
        same = several if key == "auxiliary" else list(map(abspath, several))
        for one, place in zip(several, same, strict=True):
            if same.count(place) > 1:
                yield f"{key}: expected each {what} once, found {one} twice"
    by_task = {**weights_by_task(c), "task_options": c.task_options, "own_tasks": c.own_tasks}
    by_task["auxiliary"] = dict.fromkeys(c.auxiliary)
    for key, values in by_task.items():
        yield from not_among_tasks(c, key, values)
    first = c.first()
    if first and first.task is not None:
        yield from not_among_tasks(c, "first_task", [first.task])


def teacher_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of teachers and of the weight of their scores."""
    learning = [one for one in c.regularizers if one.learns_from_teacher]
    if learning and not c.teacher:
        key = f"{learning[0].prefix}weight"
        yield f"{key}: expected setting teacher, the runs to learn from, found none"
    if c.teacher and not learning:
        yield "teacher: expected a weight above 0, such as distillation_weight, found none"
    for one in learning:
        tasks = [task for task in one.weights if task in c.tasks]
        softened = isinstance(one, Distillation) and one.temperature != 1
        if softened and tasks and not any(c.options_of(task).has_classes for task in tasks):
            line = "distillation_temperature: expected a task with classes"
            yield f"{line}, found {', '.join(tasks)}"


def not_among_tasks(c: RunConfig, key: str, names: Any) -> Iterator[str]:
    """Yield a sentence for each name that is not one of the run's tasks."""
    for name in names:
        if c.tasks and name not in c.tasks:
            line = f"{key}: expected one of {', '.join(c.tasks)}, found {short_repr(name)}"
            yield line + suggestion(name, c.tasks)


def mixing_rules(c: RunConfig) -> Iterator[str]:
    """Yield faults of sampler, schedule and combiner."""
    if c.sampling.first() and c.schedule.first():
        yield f"sampling {c.sampling.name} and schedule {c.schedule.name}: {ONE}"
    if c.first() and len(c.tasks) < 2:
        method, tasks = c.first_method, ", ".join(c.tasks)
        yield f"{method}: expected two tasks or more, found {tasks}"
    if c.schedule.one_batch and (c.batches_per_step or 1) > 1:
        yield (
            f"batches_per_step: expected 1 with schedule {c.schedule.name}, "
            f"found {c.batches_per_step}"
        )


def unused_faults(c: RunConfig, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each setting among those `given` that the run does not use.

    The command line refuses such a flag even with its default value. A configuration that is
    copied from another one may hold settings that it does not use.
    """
    yield from ineffective_faults(c, given)
    unused = {key for key in c.unused() if key in given and given[key] != 0}
    for key in sorted(unused - {"leaks_of", "similarity_scale"}):
        owner = owner_of(key, owners(c.user_methods))
        yield f"{key}: expected {owner}, found {given[key]!r} without it"


def ineffective_faults(c: RunConfig, given: Container[str]) -> Iterator[str]:
    """Yield a sentence for each setting among those `given` that has no effect in this run.

    It belongs to a part that every run has, but this run does not train or use that part.
    """
    yield from frozen_rules(c, given)
    objective = c.task_objective
    if (
        objective is not None
        and objective.own_pooling
        and "pooling" in given
        and all(c.options_of(task).has_classes for task in c.tasks)
    ):
        yield f"pooling: expected another objective, for {objective.name} has its own"
    yield from head_rate_rules(c, given) if c.pretrains else ()


def task_name_rules(c: RunConfig) -> Iterator[str]:
    """Yield unknown tasks, options that a task does not have, and objectives of another mode."""
    known = (*c.task_classes, *c.own_tasks)
    for name in c.tasks:
        if name not in known:
            line = f"tasks: expected one of {', '.join(known)}, found {name!r}"
            yield line + suggestion(name, known)
    for name in repeated(c.tasks):
        yield f"tasks: expected each task once, found {name} twice"
    for task, options in c.task_options.items():
        yield from option_faults(c.task_classes.get(task), options, task)
    if c.task_objective is not None and c.pretrains:
        every = methods("objective").items()
        names = ", ".join(n for n, one in every if not issubclass(one, Objective))
        yield f"objective: expected one of {names} in mode pretrain, found {c.task_objective.name}"
    if c.pretraining_objective is not None and c.mode and not c.pretrains:
        name = c.pretraining_objective.name
        yield f"objective: expected mode pretrain for {name}, found {c.mode}"


def option_faults(
    cls: type[TaskOptions] | None, options: Mapping[str, str], task: str
) -> Iterator[str]:
    """Yield a sentence for an option that a task does not have, or not with this value."""
    known = {} if cls is None else cls.by_key()
    for option in options:
        if option not in known:
            names = ", ".join(known) or "none"
            yield f"task_options: {task}: expected options of {names}, found {option!r}"
            return
    if cls is not None:
        try:
            cls(**options)
        except SettingsError as error:
            line = str(error).removeprefix(f"task_options: {task}: ")
            yield f"task_options: {task}: {line}"
