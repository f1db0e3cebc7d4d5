"""Train several tasks on one encoder: run.py --mode multitask --sampling annealed --pcgrad"""

from __future__ import annotations

import argparse

from cli.flags import (
    COMBINERS,
    SAMPLINGS,
    add_training_flags,
    check_task_flags,
    number,
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
        help=f"tasks that share the encoder, out of {', '.join(TASK_NAMES)}",
    )
    group.add_argument(
        "--sampling", choices=SAMPLINGS, default="round-robin", help="which task's batch comes next"
    )
    group.add_argument(
        "--batches-per-step",
        type=number(int, 1),
        metavar="N",
        help="batches of one optimiser step; by default as many as there are tasks",
    )
    group.add_argument(
        "--combiner",
        choices=COMBINERS,
        help="how the tasks' gradients become one step; by default sum",
    )
    group.add_argument("--pcgrad", action="store_true", help="short for --combiner pcgrad")
    add_training_flags(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = tuple(args.tasks)
    for task in tasks:
        if tasks.count(task) > 1:
            parser.error(f"--tasks: expected each task once, found {task} twice")
    check_task_flags(args, parser, tasks)
    if args.pcgrad and args.combiner not in (None, "pcgrad"):
        parser.error(f"--pcgrad and --combiner {args.combiner}: expected one combiner")
    combiner = "pcgrad" if args.pcgrad else args.combiner or "sum"
    if args.freeze_encoder and combiner != "sum":
        parser.error(
            f"--freeze-encoder and {combiner}: expected shared parameters for the combiner to work "
            "on, found none"
        )
    config = training_config(
        args,
        mode="multitask",
        tasks=tasks,
        sampling=args.sampling,
        batches_per_step=args.batches_per_step or len(tasks),
        combiner=combiner,
    )
    return train(config, args)
