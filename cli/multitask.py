"""Train several tasks on one encoder: run.py --mode multitask --sampling annealed --pcgrad"""

from __future__ import annotations

import argparse

from cli.flags import add_training_flags
from cli.mixing import (
    add_combiner_flags,
    add_mixing_flags,
    add_single_combiner_flags,
    mixing_settings,
)
from cli.objective import add_objective_flags, objective_settings
from cli.regularizing import add_regularizer_flags, regularizer_settings
from cli.run_config import check_training_flags, training_config
from cli.task_names import add_own_task, settled, task
from cli.train import train
from tasks import CS224N, TASK_NAMES


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_task_list(parser, CS224N)
    add_mixing_flags(parser)
    add_combiner_flags(parser)
    add_single_combiner_flags(parser)
    add_objective_flags(parser)
    add_regularizer_flags(parser)
    add_training_flags(parser)


def add_task_list(
    parser: argparse.ArgumentParser,
    chosen: tuple[str, ...],
    what: str = "that share the encoder",
) -> None:
    """`--tasks`, of which `chosen` are the default where no `--task` is given."""
    parser.add_argument(
        "--tasks",
        nargs="+",
        type=task,
        metavar="TASK",
        help=f"tasks {what}, of {', '.join(TASK_NAMES)} (default: {' '.join(chosen)}; with --task "
        "none)",
    )
    parser.set_defaults(default_tasks=chosen)
    add_own_task(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = distinct_tasks(args, parser)
    check_training_flags(args, parser, tasks)
    settings = mixing_settings(args, parser, tasks)
    settings |= objective_settings(args, parser, tasks)
    settings |= regularizer_settings(args, parser, tasks)
    return train(training_config(args, mode="multitask", tasks=tasks, **settings), args)


def distinct_tasks(args: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """Of `--tasks` and `--task`; the mode's default tasks where neither is given."""
    further = args.further or []
    tasks = args.tasks
    if tasks is None:
        tasks = [] if further else args.default_tasks
    return settled(args, parser, [*tasks, *further])
