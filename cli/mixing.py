"""Flags that say how tasks are mixed and their gradients combined, and what contradicts what."""

from __future__ import annotations

import argparse
from typing import Any

from cli.mixing_checks import (
    check_combiner,
    check_owners,
    check_representation,
    check_schedule,
    checked_preference,
)
from cli.objective import classified
from cli.values import COUNT, default, number
from multitask.choices import GRADIENTS, TASK_OBJECTIVES
from multitask.combiners import COMBINERS
from multitask.sampling import SAMPLERS
from multitask.schedule import SCHEDULES
from multitask.values import MANY
from tasks import PULL_PUSH


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
        "--first-task",
        metavar="TASK",
        help="task of the first epochs with --schedule first-then-joint and --sampling hybrid "
        "(default: the one with the most examples, before any --limit)",
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
        "batch whose objectives share it (default: parameters; of --objective epo with one task "
        "the embeddings)",
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
        "gradients": getattr(args, "gradients", None) or default_gradients(args, tasks),
    }
    check_owners(args, parser, settings)
    check_schedule(args, parser, settings, tasks)
    per_step = getattr(args, "batches_per_step", None)
    joint = settings["schedule"] != "individual"
    settings["batches_per_step"] = (per_step or len(tasks)) if joint else 1
    objectives = objective_names(args, tasks)
    check_representation(args, parser, settings, objectives)
    if apart(args):  # EPO takes each task's objectives together before the combiner sees them
        objectives = {task: (task,) for task in tasks}
    check_combiner(args, parser, settings, objectives)
    if wish := getattr(args, "preference", None):
        settings["preference"] = checked_preference(wish, parser, settings["combiner"], objectives)
    return settings


def apart(args: argparse.Namespace) -> bool:
    """Whether tasks with classes have several objectives that are combined by themselves."""
    return getattr(args, "objective", None) == "epo"


def default_gradients(args: argparse.Namespace, tasks: tuple[str, ...]) -> str:
    """At the embeddings where one batch has several objectives: one pass back, not three."""
    several = apart(args) and len(tasks) == 1 and not args.micro_batch
    alone = getattr(args, "batches_per_step", None) in (None, 1)
    return "representation" if several and alone else "parameters"


def objective_names(args: argparse.Namespace, tasks: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Each task's objectives, as `Task.objectives` gives them, without building the task."""
    if apart(args):
        several = classified(args, tasks)
        return {t: tuple(f"{t}/{n}" for n in PULL_PUSH) if t in several else (t,) for t in tasks}
    return {
        task: TASK_OBJECTIVES.get((task, str(getattr(args, f"{task}_loss", ""))), ()) or (task,)
        for task in tasks
    }
