"""Rules over several settings of a run: one sentence for each contradiction.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from minbert.typed import shown
from multitask import choices
from multitask.combiners import ONE_AT_A_TIME, POSITIVE, PREFERRING
from multitask.schedule import FIRST, has_first_epochs
from tasks import MANY_CLASSES, PAIRS, PULL_PUSH, SIMILARITIES, TASK_NAMES

if TYPE_CHECKING:
    from multitask.config import RunConfig

TERM_WEIGHTS = ("smart_weight", "proximal_weight", "r_drop_weight")  # of regularisers, by task
ONE_TASK = ("single",)  # modes with one task
SMART = tuple(
    f"smart_{name}"
    for name in ("steps", "step_size", "radius", "norm", "variant", "place", "dropout")
)
PAIRED = ("qqp", "sts")  # tasks whose labels say which texts belong together
ROUNDING = 1e-9  # how far a preference may be from adding up to 1
BF16_RADIUS = 2**-8  # the spacing of bfloat16 numbers: smaller shares are rounded away


def faults(config: RunConfig, defaults: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about a configuration, given the defaults of all settings.

    A configuration with nothing to train on is one that others are made from: what depends on that
    is checked when they have some.
    """
    yield from of_training(config)
    if config.mode == "pretrain":
        yield from of_pretraining(config, defaults)
    elif config.objective in choices.TEXT_OBJECTIVES + choices.CLASS_OBJECTIVES and config.mode:
        yield f"objective: expected mode pretrain for {config.objective}, found {config.mode}"
    if config.tasks or config.text is not None or config.nli is not None:
        yield from unused(config, defaults)
        yield from of_tasks(config)
        yield from of_data(config)
        if config.mode != "pretrain":
            yield from of_mixing(config)
            yield from of_objective(config, defaults)


def unused(config: RunConfig, defaults: Mapping[str, Any]) -> Iterator[str]:
    """Settings that have no effect in this configuration, though they differ from the default."""
    for name, (owner, used) in owners_of(config).items():
        if not used and getattr(config, name) != defaults[name]:
            yield f"{name}: expected {owner}, found {shown(getattr(config, name))} without it"


def without_effect(config: Any) -> tuple[str, ...]:
    """Names of settings that a configuration, or what has its attributes, does not use."""
    return tuple(name for name, (_, used) in owners_of(config).items() if not used)


def owners_of(config: Any) -> dict[str, tuple[str, bool]]:
    """What each setting that not every run uses belongs to, and whether this run has it."""
    owners: dict[str, tuple[str, bool]] = {
        "temperature": ("sampling temperature", config.sampling == "temperature"),
        "size_cap": ("sampling temperature", config.sampling == "temperature"),
        "first_task": (f"sampling hybrid or schedule {FIRST}", has_first_epochs(config)),
        "first_epochs": (f"sampling hybrid or schedule {FIRST}", has_first_epochs(config)),
        "cones": ("combiner pareto-mtl", config.combiner == "pareto-mtl"),
        "preference": (f"combiner {' or '.join(PREFERRING)}", config.combiner in PREFERRING),
        "loss_sizes": ("mode pareto", config.mode == "pareto"),
        "proximal_momentum": ("a proximal_weight above 0", any(config.proximal_weight.values())),
        "similarity_scale": ("a task of similarities", trains_similarities(config)),
        "leaks_of": ("drop_leaks", config.drop_leaks),
        "text_column": ("text", config.text is not None),
        "hard_after": ("hard_negatives", bool(config.hard_negatives)),
        "imbalance": ("protocol imbalanced", config.protocol == "imbalanced"),
        "shots": (f"protocol {' or '.join(choices.SHOTS)}", config.protocol in choices.SHOTS),
        **{name: ("a smart_weight above 0", any(config.smart_weight.values())) for name in SMART},
    }
    for name, objectives in choices.PRETRAINING_SETTINGS.items():
        fits = config.mode == "pretrain" and config.objective in (None, *objectives)
        owners.setdefault(name, (f"mode pretrain and objective {' or '.join(objectives)}", fits))
    for name, objectives in choices.OBJECTIVE_SETTINGS.items():
        fits = config.objective in objectives
        owners.setdefault(name, (f"objective {' or '.join(objectives)}", fits))
    return owners


def of_training(config: RunConfig) -> Iterator[str]:
    """How long, with which parts of the model, and which epoch is kept."""
    if config.keep == "last" and config.patience is not None:
        yield "keep last and patience: expected one of them"
    if config.probe_epochs:
        if config.freeze_encoder:
            yield "probe_epochs and freeze_encoder: expected one of them"
        if config.probe_epochs >= config.epochs:
            found = config.probe_epochs
            yield f"probe_epochs: expected fewer than epochs {config.epochs}, found {found}"
        if has_first_epochs(config):
            yield "probe_epochs: expected all tasks in the first epochs, found one task only"
    if has_first_epochs(config) and config.first_epochs >= config.epochs:
        found = config.first_epochs
        yield f"first_epochs: expected fewer than epochs {config.epochs}, found {found}"
    if config.hard_after and config.hard_after >= config.epochs:
        yield f"hard_after: expected fewer than epochs {config.epochs}, found {config.hard_after}"
    if len(config.hard_negatives) > 1:
        yield f"hard_negatives: expected one of them, found {', '.join(config.hard_negatives)}"
    radius = config.smart_radius
    if config.precision == "bf16" and radius is not None and radius < BF16_RADIUS:
        yield (
            f"smart_radius: expected {BF16_RADIUS:.4f} at least with precision bf16, which rounds "
            f"by more than such noise, found {radius}"
        )
    weighted = [name for name in TERM_WEIGHTS if any(getattr(config, name).values())]
    if config.freeze_encoder and weighted:
        yield f"{weighted[0]} and freeze_encoder: expected one of them"
    if config.label_start == "names" and config.init is not None:
        yield "label_start names and init: expected one of them"
    if config.protocol in choices.SHOTS:
        if config.shots is None:
            yield f"protocol {config.protocol}: expected shots, found none"
        if config.limit is not None:
            yield "limit and shots: expected one of them"
    if config.protocol == "imbalanced" and config.imbalance is None:
        yield "protocol imbalanced: expected imbalance, found none"


def of_tasks(config: RunConfig) -> Iterator[str]:
    """Names of tasks, and what is set by task."""
    known = (*TASK_NAMES, *config.own_tasks)
    for name in config.tasks:
        if name not in known:
            yield f"tasks: expected one of {', '.join(known)}, found {name!r}"
        if config.tasks.count(name) > 1:
            yield f"tasks: expected each task once, found {name} twice"
    if config.mode in ONE_TASK and len(config.tasks) != 1:
        yield f"tasks: expected one in mode {config.mode}, found {', '.join(config.tasks)}"
    for name in (*TERM_WEIGHTS, "task_options", "own_tasks"):
        for task in getattr(config, name):
            if task not in config.tasks:
                yield f"{name}: expected one of {', '.join(config.tasks)}, found {task!r}"
    if config.first_task is not None and config.first_task not in config.tasks:
        first = shown(config.first_task)
        yield f"first_task: expected one of {', '.join(config.tasks)}, found {first}"
    for task, options in config.task_options.items():
        yield from option_faults(task, options)


def option_faults(task: str, options: Any) -> Iterator[str]:
    """Options that a task does not have, or not with this value."""
    known = dict(choices.TASK_OPTIONS.get(task, {}))
    if task in PAIRS:
        known["pair"] = choices.PAIR_OPTIONS
    if task in MANY_CLASSES:
        known["classes"] = tuple(map(str, range(2, MANY_CLASSES[task] + 1)))
    if options.get("pair") == "joint" and set(options) & {"head", "loss"}:
        yield f"task_options: {task}: pair joint: expected neither head nor loss beside it"
    for option, value in options.items():
        if option not in known:
            names = ", ".join(known) or "none"
            yield f"task_options: {task}: expected options of {names}, found {option!r}"
        elif value not in known[option]:
            names = ", ".join(known[option])
            yield f"task_options: {task}: {option}: expected one of {names}, found {value!r}"


def of_data(config: RunConfig) -> Iterator[str]:
    """Which examples are used."""
    if isinstance(config.limit, dict):
        for task in config.limit:
            if task not in config.tasks:
                yield f"limit: expected one of {', '.join(config.tasks)}, found {task!r}"
    similar = [task for task in config.tasks if not has_classes(config, task)]
    if config.shots is not None and similar:
        yield f"protocol {config.protocol}: expected tasks with classes, found {similar[0]}"
    if config.similarity_scale != 1 and not similar:
        yield (
            f"similarity_scale: expected a task of similarities, found {', '.join(config.tasks)}"
        )


def of_mixing(config: RunConfig) -> Iterator[str]:
    """Sampler, schedule and combiner."""
    hybrid, first = config.sampling == "hybrid", config.schedule == FIRST
    if hybrid and first:
        yield f"sampling hybrid and schedule {FIRST}: expected one of them"
    if (hybrid or first) and len(config.tasks) < 2:
        name = "sampling hybrid" if hybrid else f"schedule {FIRST}"
        yield f"{name}: expected two tasks or more, found {config.tasks[0]}"
    if config.schedule == "individual" and (config.batches_per_step or 1) > 1:
        yield "batches_per_step: expected schedule joint, found individual"
    several = objectives_of(config)
    every = [name for names in several.values() for name in names]
    if config.gradients == "representation":
        if len(several) > 1 or len(every) < 2:
            yield (
                "gradients representation: expected one task with several objectives, found "
                f"{', '.join(every)}"
            )
        if config.step_batches > 1:
            found = config.step_batches
            yield f"gradients representation: expected batches_per_step 1, found {found}"
        for name in ("micro_batch", "freeze_encoder"):
            if getattr(config, name):
                yield f"gradients representation and {name}: expected one of them"
    if config.objective == "epo":  # its objectives are taken together before the combiner
        several = {task: (task,) for task in config.tasks}
        every = list(config.tasks)
    yield from combiner_faults(config, several, every)
    if config.preference is not None:
        yield from preference_faults(config, every)
    if config.loss_sizes is not None and len(config.loss_sizes) != len(every):
        yield f"loss_sizes: expected {len(every)} numbers, found {len(config.loss_sizes)}"


def combiner_faults(
    config: RunConfig, several: dict[str, tuple[str, ...]], every: list[str]
) -> Iterator[str]:
    """A combiner that would never meet two objectives, or a shared parameter."""
    name = config.combiner
    if name == "sum":
        return
    if len(every) < 2:
        yield f"combiner {name}: expected two objectives or more, found {', '.join(every)}"
    at_once = max(len(names) for names in several.values())
    if config.step_batches == 1 and at_once < 2 and name not in ONE_AT_A_TIME:
        yield (
            f"combiner {name}: expected steps with two objectives or more, found schedule "
            f"{config.schedule} with batches_per_step {config.step_batches}"
        )
    if config.freeze_encoder:
        yield f"combiner {name}: expected a shared encoder, found freeze_encoder"


def preference_faults(config: RunConfig, every: list[str]) -> Iterator[str]:
    wish = config.preference or ()
    shown = " ".join(f"{weight:g}" for weight in wish)
    if len(wish) != len(every):
        names = ", ".join(every)
        yield f"preference: expected {len(every)} numbers, for {names}, found {shown or 'none'}"
    elif not sum(wish) > 0:
        yield f"preference: expected a number above 0 among them, found {shown}"
    elif config.combiner in POSITIVE and not all(weight > 0 for weight in wish):
        yield f"preference: expected numbers above 0 for combiner {config.combiner}, found {shown}"


def of_objective(config: RunConfig, defaults: Mapping[str, Any]) -> Iterator[str]:
    """What tasks with classes are trained by."""
    name, classes = config.objective, [t for t in config.tasks if has_classes(config, t)]
    if (name or config.per_class) and not classes:
        what = f"objective {name}" if name else "per_class"
        yield f"{what}: expected a task with classes, found {', '.join(config.tasks)}"
    if not name:
        return
    if name not in choices.HEADS_ALONE:
        for flag in ("freeze_encoder", "probe_epochs"):
            if getattr(config, flag):
                yield f"objective {name} and {flag}: expected one of them"
    for flag in TERM_WEIGHTS:
        for task in getattr(config, flag):
            if task in classes:
                yield f"objective {name} and {flag} of {task}: expected one of them"
    if config.task_options.get("qqp", {}).get("loss") not in (None, "cross-entropy"):
        yield f"objective {name} and loss of qqp: expected one of them"
    if name in choices.OWN_HEADS:
        for task in classes:
            if "head" in config.task_options.get(task, {}):
                yield f"task_options: {task}: head: expected another objective than {name}"
    if name in choices.ONE_VECTOR:
        for task in classes:
            if two_vectors(config, task):
                yield f"objective {name}: expected single texts or pair joint, found {task}"
    if name in choices.LACON:
        if "icl" not in config.label_terms and config.batch_size == 1:
            yield "batch_size: expected 2 or more without icl among label_terms, found 1"
        for setting, term in (("label_spread", "ler"), ("label_heads", "icl")):
            found = getattr(config, setting)
            if term not in config.label_terms and found != defaults[setting]:
                yield f"{setting}: expected {term} among label_terms, found {found}"
    if config.scl_weight == 1 and name in choices.CONTRASTIVE:
        yield "scl_weight: expected a number below 1, or nothing trains the heads"
    wish = config.scl_preference
    if name in ("ls", "epo") and abs(sum(wish) - 1) > ROUNDING:
        yield f"scl_preference: expected two numbers that add up to 1, found {wish}"
    if name == "epo" and not all(wish):
        yield f"scl_preference: expected numbers between 0 and 1 for EPO, found {wish}"
    if name == "projection" and not config.projection_layers:
        yield "projection_layers: expected 1 or more with objective projection, found 0"
    if name in choices.LACON and config.label_terms == ("ler",):
        yield "label_terms: expected icl or lcl, or nothing trains the encoder"


def of_pretraining(config: RunConfig, defaults: Mapping[str, Any]) -> Iterator[str]:
    """Where the texts come from, and what of them is learnt."""
    name = config.objective
    if name in choices.OBJECTIVES:
        names = ", ".join(choices.TEXT_OBJECTIVES + choices.CLASS_OBJECTIVES)
        yield f"objective: expected one of {names} in mode pretrain, found {name}"
    if name == "nli" and config.nli is None:
        yield "nli: expected a file with objective nli, found none"
    if name in choices.PAIRS_OF_TEXTS and config.text is not None and not config.other_column:
        yield f"other_column: expected one with objective {name}, found none"
    if config.text_column is not None and config.text_column == config.other_column:
        yield f"other_column: expected another than text_column, found {config.other_column!r}"
    if name != "triplet" and config.batch_size == 1:
        yield "batch_size: expected 2 or more, for the others of a batch are negatives, found 1"
    if config.freeze_encoder or config.probe_epochs:
        yield "mode pretrain: expected neither freeze_encoder nor probe_epochs"
    for setting in ("combiner", "gradients", "sampling", "schedule", "select_by"):
        if (found := getattr(config, setting)) != defaults[setting]:
            yield f"{setting}: expected {defaults[setting]} in mode pretrain, found {found}"
    if config.batches_per_step not in (None, 1):
        found = config.batches_per_step
        yield f"batches_per_step: expected 1 in mode pretrain, found {found}"
    if isinstance(config.limit, dict):
        yield "limit: expected one for all tasks in mode pretrain, found one by task"
    if name in choices.TEXT_OBJECTIVES:
        for setting in ("protocol", "per_class", "drop_leaks", "task_options"):
            if (found := getattr(config, setting)) != defaults[setting]:
                yield f"{setting}: expected an objective of classes, found {name} with {found}"
    if name in choices.PAIRS_OF_TEXTS and config.text is None:
        for task in config.tasks:
            if task not in PAIRED:
                yield f"tasks: expected {' or '.join(PAIRED)} with objective {name}, found {task}"
    if name in choices.CLASS_OBJECTIVES:
        for task in config.tasks:
            if not has_classes(config, task):
                yield f"objective {name}: expected tasks with classes, found {task}"
            elif two_vectors(config, task):
                yield f"objective {name}: expected single texts or pair joint, found {task}"
    for weights in TERM_WEIGHTS:
        if getattr(config, weights):
            yield f"{weights}: expected none in mode pretrain, found {getattr(config, weights)}"


def trains_similarities(config: Any) -> bool:
    return config.mode != "pretrain" and any(not has_classes(config, task) for task in config.tasks)


def two_vectors(config: RunConfig, task: str) -> bool:
    """Whether the examples of a task are pairs with an embedding for each text."""
    own = config.own_tasks.get(task)
    if own is not None:
        return len(own.get("texts", ())) == 2 and not own.get("joint")
    return task in PAIRS and config.task_options.get(task, {}).get("pair") != "joint"


def has_classes(config: RunConfig, task: str) -> bool:
    """Whether a task is one of classes, not of similarities."""
    own = config.own_tasks.get(task, {})
    return task not in SIMILARITIES and own.get("type") != "similarity"


def objectives_of(config: RunConfig) -> dict[str, tuple[str, ...]]:
    """Each task's objectives, as `Task.objectives` gives them, without building the task."""
    found: dict[str, tuple[str, ...]] = {}
    for task in config.tasks:
        loss = config.task_options.get(task, {}).get("loss", "")
        found[task] = choices.TASK_OBJECTIVES.get((task, loss), (task,))
        if config.objective == "epo" and has_classes(config, task):
            found[task] = tuple(f"{task}/{term}" for term in PULL_PUSH)
    return found
