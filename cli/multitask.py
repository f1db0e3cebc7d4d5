"""Train several tasks on one encoder: run.py --mode multitask --sampling annealed --pcgrad"""

from __future__ import annotations

import argparse
from typing import Any

from cli.settings_flags import Flags
from cli.single import COMMON
from cli.task_names import add_table, table_of
from cli.training import Chosen, config_of, settings_file, train, training_flags
from tasks import CS224N, TASK_NAMES


def add_flags(parser: Any) -> None:
    parser.flags = flags = training_flags(
        parser,
        "multitask",
        lambda one: not one.pretrains,
        common=(*COMMON, "schedule", "branch"),
    )
    add_task_list(flags, CS224N)
    add_table(flags)
    flags.add_task_options(TASK_NAMES)


def add_task_list(
    flags: Flags,
    chosen: tuple[str, ...],
    what: str = "that share the encoder",
    default: str | None = None,
) -> None:
    """Add `--tasks`; without it and `--data-file`, the tasks are `chosen`, or as `default` says."""
    default = default or f"{' '.join(chosen)}; none with --data-file"
    flags.add(
        "tasks",
        "tasks",
        f"tasks {what}: {', '.join(TASK_NAMES)} (default: {default})",
        common=True,
        nargs="+",
        action="extend",
        metavar="TASK",
    )


def main(args: argparse.Namespace, parser: Any) -> int:
    tasks = distinct_tasks(args, CS224N)
    return train(config_of(args, parser, tasks, mode="multitask"), args)


def distinct_tasks(args: argparse.Namespace, default: tuple[str, ...]) -> Chosen:
    """Return the tasks of the flags, or else of the file of settings, or else the `default`."""
    own = table_of(args)
    tasks = args.tasks
    if tasks is None:
        tasks = [] if own else settings_file(args).get("tasks", default)
    return (*tasks, *own)
