"""Flags that say how tasks are mixed and their gradients combined, and what contradicts what."""

from __future__ import annotations

import argparse
from typing import Any

from cli.flags import COUNT, MANY, OBJECTIVES, default
from cli.values import number
from multitask.combiners import COMBINERS, POSITIVE, PREFERRING
from multitask.config import RunConfig
from multitask.sampling import SAMPLERS
from multitask.schedule import SCHEDULES

GRADIENTS = ("parameters", "representation")
ONE_AT_A_TIME = ("sum", "linear", "uncertainty")  # mean something for a single objective, too


def add_mixing_flags(parser: argparse.ArgumentParser) -> None:
    """Flags of modes that train several tasks."""
    group = parser.add_argument_group("mixing tasks")
    group.add_argument(
        "--sampling",
        choices=tuple(SAMPLERS),
        help="which task's batch comes next" + default("sampling"),
    )
    group.add_argument(
        "--temperature",
        type=number(float, 1, MANY),
        metavar="T",
        help="of --sampling temperature: chances go as size^(1/T)" + default("temperature"),
    )
    group.add_argument(
        "--size-cap",
        type=COUNT,
        metavar="N",
        help="of --sampling temperature: a task counts as at most N examples",
    )
    group.add_argument(
        "--schedule",
        choices=SCHEDULES,
        help="one step for all tasks drawn, a step a task, or one task first" + default("schedule"),
    )
    group.add_argument(
        "--first-task", metavar="TASK", help="of --schedule first-then-joint; default: the largest"
    )
    group.add_argument(
        "--first-epochs",
        type=COUNT,
        metavar="N",
        help="epochs of one task alone, of --schedule first-then-joint and --sampling hybrid"
        + default("first_epochs"),
    )
    group.add_argument(
        "--batches-per-step",
        type=COUNT,
        metavar="N",
        help="batches of one optimiser step; by default as many as there are tasks",
    )


def add_combiner_flags(
    parser: argparse.ArgumentParser,
    choices: tuple[str, ...] = tuple(COMBINERS),
    cones: bool = True,
) -> None:
    """Flags of modes in which a step may have several objectives; a sweep has its own cones."""
    group = parser.add_argument_group("combining gradients")
    group.add_argument(
        "--combiner",
        choices=choices,
        help=f"how the objectives' gradients become one step (default: {choices[0]})",
    )
    if cones:
        group.add_argument(
            "--cones",
            type=number(int, 2, 100),
            metavar="N",
            help="of --combiner pareto-mtl: cones of the objectives' space" + default("cones"),
        )


def add_single_combiner_flags(parser: argparse.ArgumentParser) -> None:
    """Those of modes that train once, with one preference."""
    group = parser.add_argument_group("one trade-off")
    group.add_argument("--pcgrad", action="store_true", help="short for --combiner pcgrad")
    group.add_argument(
        "--preference",
        type=number(float, 0, MANY),
        nargs="+",
        metavar="W",
        help="a weight an objective, in the tasks' order; the larger, the lower its loss is to be",
    )
    group.add_argument(
        "--gradients",
        choices=GRADIENTS,
        help="where gradients are combined: on the encoder's parameters, or on the embeddings of a "
        "batch whose objectives share it" + default("gradients"),
    )


def mixing_settings(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> dict[str, Any]:
    """The settings of the configuration that these flags describe; contradictions are refused."""
    if getattr(args, "pcgrad", False) and args.combiner not in (None, "pcgrad"):
        parser.error(f"--pcgrad and --combiner {args.combiner}: expected one combiner")
    choice = "pcgrad" if getattr(args, "pcgrad", False) else args.combiner
    settings = {
        "combiner": choice or "sum",
        "sampling": getattr(args, "sampling", None) or "round-robin",
        "schedule": getattr(args, "schedule", None) or "joint",
        "gradients": getattr(args, "gradients", None) or "parameters",
    }
    check_owners(args, parser, settings)
    check_schedule(args, parser, settings, tasks)
    per_step = getattr(args, "batches_per_step", None)
    joint = settings["schedule"] != "individual"
    settings["batches_per_step"] = (per_step or len(tasks)) if joint else 1
    objectives = objective_names(args, tasks)
    check_combiner(args, parser, settings, objectives)
    if wish := getattr(args, "preference", None):
        settings["preference"] = checked_preference(wish, parser, settings["combiner"], objectives)
    return settings


def objective_names(args: argparse.Namespace, tasks: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Each task's objectives, as `Task.objectives` gives them, without building the task."""
    return {
        task: OBJECTIVES.get((task, str(getattr(args, f"{task}_loss", ""))), ()) or (task,)
        for task in tasks
    }


def check_owners(
    args: argparse.Namespace, parser: argparse.ArgumentParser, settings: dict[str, Any]
) -> None:
    """Refuse flags of a method that is not used."""
    owners = {
        "temperature": ("sampling", ("temperature",)),
        "size_cap": ("sampling", ("temperature",)),
        "first_task": ("schedule", ("first-then-joint",)),
        "cones": ("combiner", ("pareto-mtl",)),
        "preference": ("combiner", PREFERRING),
    }
    for name, (setting, values) in owners.items():
        if getattr(args, name, None) is not None and settings[setting] not in values:
            flag = name.replace("_", "-")
            parser.error(
                f"--{flag}: expected --{setting} {' or '.join(values)}, found {settings[setting]}"
            )


def check_schedule(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    settings: dict[str, Any],
    tasks: tuple[str, ...],
) -> None:
    """Refuse pairings of sampler and schedule that make no sense, with the reason."""
    hybrid, first = settings["sampling"] == "hybrid", settings["schedule"] == "first-then-joint"
    if hybrid and first:
        parser.error(
            "--sampling hybrid and --schedule first-then-joint: expected one of them, "
            "for hybrid begins with the largest task by itself"
        )
    if (hybrid or first) and len(tasks) < 2:
        name = "--sampling hybrid" if hybrid else "--schedule first-then-joint"
        parser.error(f"{name}: expected two tasks or more, found {tasks[0]} alone")
    if getattr(args, "first_task", None) not in (None, *tasks):
        parser.error(f"--first-task: expected one of {', '.join(tasks)}, found {args.first_task}")
    given = getattr(args, "first_epochs", None)
    if given is not None and not (hybrid or first):
        parser.error(
            "--first-epochs: expected --sampling hybrid or --schedule first-then-joint, found "
            f"--sampling {settings['sampling']} --schedule {settings['schedule']}"
        )
    plain = RunConfig(mode="", tasks=())
    epochs = args.epochs or plain.epochs
    if (hybrid or first) and (given or plain.first_epochs) >= epochs:
        parser.error(
            f"--first-epochs: expected fewer than --epochs {epochs}, "
            f"found {given or plain.first_epochs}"
        )
    if settings["schedule"] == "individual" and getattr(args, "batches_per_step", None):
        parser.error("--batches-per-step: expected --schedule joint, found individual")


def check_combiner(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    settings: dict[str, Any],
    objectives: dict[str, tuple[str, ...]],
) -> None:
    """Refuse a combiner that would never see two objectives or never see a shared parameter."""
    name, every = settings["combiner"], [o for several in objectives.values() for o in several]
    at_once = max(len(several) for several in objectives.values())
    if settings["batches_per_step"] > 1:
        at_once = len(every)
    if settings["gradients"] == "representation":
        if len(objectives) > 1 or len(every) < 2:
            parser.error(
                "--gradients representation: expected one task with several objectives, such as "
                "--mode single --task qqp --qqp-loss with-contrastive, for only these share a "
                f"batch, found {', '.join(every)}"
            )
        if settings["batches_per_step"] > 1:
            parser.error(
                "--gradients representation: expected --batches-per-step 1, "
                f"found {settings['batches_per_step']}"
            )
        for flag in ("micro_batch", "freeze_encoder"):
            if getattr(args, flag):
                shown = flag.replace("_", "-")
                parser.error(f"--gradients representation and --{shown}: expected one of them")
    if name == "sum":
        return
    if len(every) < 2:
        parser.error(f"--combiner {name}: expected two objectives or more, found {every[0]} alone")
    if at_once < 2 and name not in ONE_AT_A_TIME:
        parser.error(
            f"--combiner {name}: expected steps with two objectives or more, found "
            f"--schedule {settings['schedule']} --batches-per-step {settings['batches_per_step']}"
        )
    if args.freeze_encoder:
        parser.error(f"--combiner {name}: expected a shared encoder, found --freeze-encoder")


def checked_preference(
    wish: list[float],
    parser: argparse.ArgumentParser,
    combiner: str,
    objectives: dict[str, tuple[str, ...]],
) -> tuple[float, ...]:
    """The preference, adding up to 1; refused unless it has a fitting number an objective."""
    names = [name for several in objectives.values() for name in several]
    shown = " ".join(f"{weight:g}" for weight in wish)
    if len(wish) != len(names):
        parser.error(
            f"--preference: expected {len(names)} numbers, for {', '.join(names)}, found {shown}"
        )
    if not sum(wish) > 0:
        parser.error(f"--preference: expected a number above 0 among them, found {shown}")
    if combiner in POSITIVE and not all(weight > 0 for weight in wish):
        parser.error(
            f"--preference: expected numbers above 0 for --combiner {combiner}, found {shown}"
        )
    return tuple(weight / sum(wish) for weight in wish)
