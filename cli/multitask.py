"""Train several tasks on one encoder: run.py --mode multitask --sampling annealed --pcgrad"""

from __future__ import annotations

import argparse

from cli.flags import (
    COMBINERS,
    COUNT,
    SAMPLINGS,
    add_training_flags,
    check_training_flags,
    training_config,
)
from cli.train import train
from tasks import TASK_NAMES


def add_flags(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("multi-task")
    group.add_argument(
        "--tasks",
        nargs="+",
        choices=TASK_NAMES,
        default=list(TASK_NAMES),
        metavar="TASK",
        help=f"tasks that share the encoder (default: {' '.join(TASK_NAMES)})",
    )
    group.add_argument(
        "--sampling",
        choices=SAMPLINGS,
        default=SAMPLINGS[0],
        help=f"which task's batch comes next (default: {SAMPLINGS[0]})",
    )
    group.add_argument(
        "--batches-per-step",
        type=COUNT,
        metavar="N",
        help="batches of one optimiser step; by default as many as there are tasks",
    )
    group.add_argument(
        "--combiner",
        choices=COMBINERS,
        help=f"how the tasks' gradients become one step (default: {COMBINERS[0]})",
    )
    group.add_argument("--pcgrad", action="store_true", help="short for --combiner pcgrad")
    add_training_flags(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = tuple(args.tasks)
    for task in tasks:
        if tasks.count(task) > 1:
            parser.error(f"--tasks: expected each task once, found {task} twice")
    check_training_flags(args, parser, tasks)
    if args.pcgrad and args.combiner not in (None, "pcgrad"):
        parser.error(f"--pcgrad and --combiner {args.combiner}: expected one combiner")
    combiner = "pcgrad" if args.pcgrad else args.combiner or COMBINERS[0]
    batches = args.batches_per_step or len(tasks)
    if combiner != "sum":
        check_surgery(combiner, tasks, batches, args.freeze_encoder, parser)
    config = training_config(
        args,
        mode="multitask",
        tasks=tasks,
        sampling=args.sampling,
        batches_per_step=batches,
        combiner=combiner,
    )
    return train(config, args)


def check_surgery(
    combiner: str,
    tasks: tuple[str, ...],
    batches: int,
    frozen: bool,
    parser: argparse.ArgumentParser,
) -> None:
    """Refuse a combiner that would never see two objectives or never see a shared parameter."""
    if len(tasks) < 2:
        parser.error(f"--combiner {combiner}: expected two tasks or more, found {tasks[0]} alone")
    if batches < 2:
        parser.error(f"--combiner {combiner}: expected --batches-per-step 2 or more, found 1")
    if frozen:
        parser.error(f"--combiner {combiner}: expected a shared encoder, found --freeze-encoder")
