"""Rules over several settings of a run: one sentence for each contradiction.

What a method's own settings contradict is in its class. No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from common.errors import SettingsError
from common.settings import meant, shown
from multitask.combiners.base import WithPreference
from multitask.flat import UNSCALED, has_similarities, owner_of
from multitask.methods import is_default, methods, owners
from tasks import TaskOptions

if TYPE_CHECKING:
    from multitask.config import RunConfig

PAIRED = ("qqp", "sts")  # tasks whose labels say which texts belong together


def faults(config: RunConfig) -> Iterator[str]:
    """Sentences about settings of a configuration that contradict each other.

    A configuration with nothing to train on is one that others are made from: what depends on that
    is checked when they have some.
    """
    yield from of_task_names(config)
    if not config.tasks and config.text_file is None:
        return
    for wrong, sentence in rules(config):
        if wrong:
            yield sentence


def rules(c: RunConfig) -> list[tuple[object, str]]:
    """Every rule: whether it is broken, and the sentence for a user who broke it."""
    tasks = ", ".join(c.tasks)
    classes = [task for task in c.tasks if has_classes(c, task)]
    similar = [task for task in c.tasks if task not in classes]
    several = objectives_of(c)
    apart = [name for names in several.values() for name in names]
    balanced = getattr(c.objective, "balance", None) is not None
    each = list(c.tasks) if balanced else apart  # what the combiner sees
    at_once = 1 if balanced else max((len(names) for names in several.values()), default=1)
    first, combiner = c.first(), f"combiner {c.combiner.name}"
    name = c.objective.name if c.objective is not None else None
    objective = c.objective if hasattr(c.objective, "of_task") else None
    pretraining = c.objective if c.pretrains and objective is None else None
    wish = c.combiner.preference if isinstance(c.combiner, WithPreference) else None
    weighted = [(f"{one.prefix}weight", one.weights) for one in c.regularizers]
    hard_after = getattr(c.objective, "hard_after", 0)
    of_texts = pretraining is not None and not pretraining.of_classes
    found: list[tuple[object, str]] = [
        # How long, with which parts of the model, and which epoch is kept.
        (c.keep == "last" and c.patience, "keep last and patience: expected at most one of them"),
        (
            c.probe_epochs and c.freeze_encoder,
            "probe_epochs and freeze_encoder: expected at most one of them",
        ),
        (
            c.probe_epochs >= c.epochs,
            f"probe_epochs: expected fewer than epochs {c.epochs}, found {c.probe_epochs}",
        ),
        (
            c.probe_epochs and first,
            "probe_epochs: expected all tasks in the first epochs, found one task only",
        ),
        (
            first and first.epochs >= c.epochs,
            f"first_epochs: expected fewer than epochs {c.epochs}, "
            f"found {first.epochs if first else 0}",
        ),
        (
            hard_after and hard_after >= c.epochs,
            f"hard_after: expected fewer than epochs {c.epochs}, found {hard_after}",
        ),
        *((line, line or "") for line in (r.precision_fault(c.precision) for r in c.regularizers)),
        *(
            (c.freeze_encoder, f"{weight} and freeze_encoder: expected at most one of them")
            for weight, _ in weighted
        ),
        # Which examples are used.
        (
            c.protocol.counts_examples and c.limit is not None,
            "limit and shots: expected at most one of them",
        ),
        *(
            (c.tasks and task not in c.tasks, f"limit: expected one of {tasks}, found {task!r}")
            for task in (c.limit if isinstance(c.limit, dict) else ())
        ),
        (
            c.protocol.counts_examples and similar,
            f"protocol {c.protocol.name}: expected tasks with classes, found {', '.join(similar)}",
        ),
        (
            c.leaks_of != "all" and not c.drop_leaks,
            f"leaks_of: expected drop_leaks, found {c.leaks_of!r} without it",
        ),
        (
            c.similarity_scale != UNSCALED and (c.pretrains or not similar),
            f"similarity_scale: expected a task of similarities, found {tasks}",
        ),
        # Tasks, and what is set by task.
        (
            c.tasks and c.text_file is not None,
            f"tasks: expected none with {c.text_file}, whose text is used, found {tasks}",
        ),
        (
            c.mode == "single" and len(c.tasks) != 1,
            f"tasks: expected one in mode single, found {tasks}",
        ),
        *(
            (c.tasks and task not in c.tasks, f"{key}: expected one of {tasks}, found {task!r}")
            for key, by_task in [
                *weighted,
                ("task_options", c.task_options),
                ("own_tasks", c.own_tasks),
            ]
            for task in by_task
        ),
        (
            first and c.tasks and first.task is not None and first.task not in c.tasks,
            f"first_task: expected one of {tasks}, found {shown(first.task if first else None)}",
        ),
        # Sampler, schedule and combiner.
        (
            c.sampling.first() and c.schedule.first(),
            f"sampling {c.sampling.name} and schedule {c.schedule.name}: expected at most one of "
            "them",
        ),
        (
            first and len(c.tasks) < 2,
            f"{c.first_method.removeprefix('--')}: expected two tasks or more, found {tasks}",
        ),
        (
            c.schedule.one_batch and (c.batches_per_step or 1) > 1,
            f"batches_per_step: expected 1 with schedule {c.schedule.name}, "
            f"found {c.batches_per_step}",
        ),
        (
            c.loss_sizes is not None and c.mode != "pareto",
            f"loss_sizes: expected mode pareto, found {c.mode or 'none'}",
        ),
        (
            c.mode == "pareto"
            and not (isinstance(c.combiner, WithPreference) and c.combiner.sweeps),
            f"{combiner}: expected one that has a preference in mode pareto",
        ),
        (
            c.loss_sizes is not None and len(c.loss_sizes) != len(each),
            f"loss_sizes: expected {len(each)} numbers, found {len(c.loss_sizes or ())}",
        ),
    ]
    if not c.pretrains:
        found.append(
            (
                c.mode and not is_default("projection_head", c.projection_head),
                f"projection_head: expected mode pretrain, found {c.mode}",
            )
        )
        at_embeddings = c.gradients == "representation"
        more = not is_default("combiner", c.combiner)
        found += [
            # What tasks with classes are trained by.
            (
                name and not classes,
                f"objective {name}: expected a task with classes, found {tasks}",
            ),
            (
                c.per_class and not classes,
                f"per_class: expected a task with classes, found {tasks}",
            ),
            (
                at_embeddings and (len(several) > 1 or len(apart) < 2),
                "gradients representation: expected one task with several objectives, found "
                f"{', '.join(apart)}",
            ),
            (
                at_embeddings and c.step_batches > 1,
                f"gradients representation: expected batches_per_step 1, found {c.step_batches}",
            ),
            *(
                (
                    at_embeddings and getattr(c, key),
                    f"gradients representation and {key}: expected at most one of them",
                )
                for key in ("micro_batch", "freeze_encoder")
            ),
            (
                more and len(each) < 2,
                f"{combiner}: expected two objectives or more, found {', '.join(each)}",
            ),
            (
                more and c.step_batches == 1 and at_once < 2 and not c.combiner.for_one_objective,
                f"{combiner}: expected steps with two objectives or more, found schedule "
                f"{c.schedule.name} with batches_per_step {c.step_batches}",
            ),
            (
                more and c.freeze_encoder,
                f"{combiner}: expected a shared encoder, found freeze_encoder",
            ),
            (
                wish is not None and len(wish) != len(each),
                f"preference: expected {len(each)} numbers, for {', '.join(each)}, found "
                f"{len(wish or ())}",
            ),
        ]
    if objective is not None:
        found += [
            *(
                (
                    not objective.heads_alone and getattr(c, key),
                    f"objective {name} and {key}: expected at most one of them, for the objective "
                    "trains more than heads",
                )
                for key in ("freeze_encoder", "probe_epochs")
            ),
            *(
                (
                    task in classes,
                    f"objective {name} and {key} of {task}: expected at most one of them",
                )
                for key, weights in weighted
                for task in weights
            ),
            *(
                (
                    len(task_objectives(c, task)) > 1,
                    f"objective {name} and loss of {task}: expected at most one of them",
                )
                for task in classes
            ),
            *(
                (
                    objective.own_head and "head" in c.task_options.get(task, {}),
                    f"task_options: {task}: head: expected another objective than {name}",
                )
                for task in classes
            ),
            *(
                (
                    objective.one_vector and two_vectors(c, task),
                    f"objective {name}: expected single texts or pair joint, found {task}",
                )
                for task in classes
            ),
            (
                objective.starts_at_names and c.init is not None,
                "label_start names and init: expected at most one of them",
            ),
            (line := objective.batch_fault(c.batch_size), line or ""),
        ]
    if c.pretrains:
        found += [
            (
                not is_default("projection_head", c.projection_head) and of_texts,
                f"projection_head: expected an objective of classes, found {name}",
            ),
            (
                c.batch_size == 1 and pretraining is not None and pretraining.compares,
                "batch_size: expected 2 or more, for the others of a batch are negatives, found 1",
            ),
            (
                c.freeze_encoder or c.probe_epochs,
                "mode pretrain: expected neither freeze_encoder nor probe_epochs",
            ),
            *(
                (
                    not is_default(role, getattr(c, role)),
                    f"{role}: expected {next(iter(methods(role)))} in mode pretrain, found "
                    f"{getattr(c, role).name}",
                )
                for role in ("combiner", "sampling", "schedule")
            ),
            (c.select_by, f"select_by: expected None in mode pretrain, found {c.select_by}"),
            (
                c.gradients != "parameters",
                f"gradients: expected parameters in mode pretrain, found {c.gradients}",
            ),
            (
                c.batches_per_step not in (None, 1),
                f"batches_per_step: expected 1 in mode pretrain, found {c.batches_per_step}",
            ),
            (
                isinstance(c.limit, dict),
                "limit: expected one for all tasks in mode pretrain, found one by task",
            ),
            *(
                (of_texts and wrong, f"{key}: expected an objective of classes, found {name}")
                for key, wrong in (
                    ("protocol", not is_default("protocol", c.protocol)),
                    ("per_class", c.per_class),
                    ("drop_leaks", c.drop_leaks),
                    ("task_options", c.task_options and not any(c.task_options.values())),
                    *(
                        (f"task_options: {task}: {option}", True)
                        for task, options in c.task_options.items()
                        for option in options
                    ),
                )
            ),
            *(
                (
                    pretraining is not None
                    and pretraining.of_pairs
                    and pretraining.file is None
                    and task not in PAIRED,
                    f"tasks: expected {' or '.join(PAIRED)} with objective {name}, found {task}",
                )
                for task in c.tasks
            ),
            *(
                (wrong, f"objective {name}: expected {what}, found {task}")
                for task in (c.tasks if pretraining and pretraining.of_classes else ())
                for wrong, what in (
                    (task in similar, "tasks with classes"),
                    (two_vectors(c, task), "single texts or pair joint"),
                )
            ),
            *(
                (weights, f"{key}: expected none in mode pretrain, found {weights}")
                for key, weights in weighted
            ),
        ]
    return found


def unused_faults(c: RunConfig, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each setting among those `given` that the run does not use.

    The command line refuses such a flag even with its default value. A configuration that is
    copied from another one may hold settings that it does not use.
    """
    if c.freeze_encoder and "lr" in given:
        yield "freeze_encoder and lr: expected only head_lr"
    own_pooling = getattr(c.objective, "own_pooling", False)
    if own_pooling and "pooling" in given and all(has_classes(c, task) for task in c.tasks):
        yield f"pooling: expected another objective, for {c.objective.name} has its own"
    unused = {key for key in c.unused() if key in given and given[key] != 0}
    for key in sorted(unused - {"leaks_of", "similarity_scale"}):
        owner = owner_of(key, owners(c.outside))
        yield f"{key}: expected {owner}, found {given[key]!r} without it"


def of_task_names(config: RunConfig) -> Iterator[str]:
    """Tasks that are none, or come twice, and options that a task does not have."""
    known = (*config.task_classes, *config.own_tasks)
    for name in config.tasks:
        if name not in known:
            line = f"tasks: expected one of {', '.join(known)}, found {name!r}"
            yield line + meant(name, known)
        if config.tasks.count(name) > 1:
            yield f"tasks: expected each task once, found {name} twice"
    for task, options in config.task_options.items():
        yield from option_faults(config.task_classes.get(task), options, task)
    objective = config.objective
    if objective is not None and config.mode:
        if hasattr(objective, "of_task") and config.pretrains:
            names = ", ".join(
                n for n, one in methods("objective").items() if not hasattr(one, "of_task")
            )
            yield f"objective: expected one of {names} in mode pretrain, found {objective.name}"
        if not hasattr(objective, "of_task") and not config.pretrains:
            yield f"objective: expected mode pretrain for {objective.name}, found {config.mode}"


def option_faults(
    cls: type[TaskOptions] | None, options: Mapping[str, str], task: str
) -> Iterator[str]:
    """Options that a task does not have, or not with this value."""
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


def two_vectors(config: RunConfig, task: str) -> bool:
    """Whether the examples of a task are pairs with an embedding for each text."""
    own = config.own_tasks.get(task)
    if own is not None:
        return len(own.get("texts", ())) == 2 and not own.get("joint")
    options = config.options_of(task)
    return options is not None and not options.similarity and options.vectors > 1


def has_classes(config: RunConfig, task: str) -> bool:
    """Whether a task is one of classes, not of similarities."""
    return not has_similarities(vars(config), task)


def task_objectives(config: RunConfig, task: str) -> tuple[str, ...]:
    """The objectives of a task with its own loss."""
    options = config.options_of(task)
    return (task,) if options is None else options.objectives


def objectives_of(config: RunConfig) -> dict[str, tuple[str, ...]]:
    """Each task's objectives, as `Task.objectives` gives them, without building the task."""
    return {
        task: config.objective.terms_of(task)
        if hasattr(config.objective, "terms_of") and has_classes(config, task)
        else task_objectives(config, task)
        for task in config.tasks
    }
