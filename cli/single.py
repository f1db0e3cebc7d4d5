"""Train one task: python run.py --mode single --task sts"""

from __future__ import annotations

import argparse
from typing import Any

from cli.task_names import add_table, add_task, only_task
from cli.training import config_of, train, training_flags
from tasks import TASK_NAMES

COMMON = ("test_limit", "freeze_encoder", "teacher")  # further settings in --help


def add_flags(parser: Any) -> None:
    parser.flags = flags = training_flags(
        parser, "single", lambda one: not one.pretrains, common=COMMON
    )
    add_task(flags, "task to train", TASK_NAMES)
    add_table(flags)
    flags.add_task_options(TASK_NAMES)


def main(args: argparse.Namespace, parser: Any) -> int:
    tasks = only_task(args, parser)
    return train(config_of(args, parser, tasks, mode="single"), args)
