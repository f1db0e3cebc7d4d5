"""Train one task: python run.py --mode single --task sts"""

from __future__ import annotations

import argparse

from cli.flags import add_training_flags
from cli.mixing import add_combiner_flags, add_single_combiner_flags, mixing_settings
from cli.objective import add_objective_flags, objective_settings
from cli.regularizing import add_regularizer_flags, regularizer_settings
from cli.run_config import check_training_flags, training_config
from cli.task_names import add_task, settled
from cli.train import train
from tasks import TASK_NAMES


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_task(parser, "the task to train", TASK_NAMES)
    add_combiner_flags(parser)
    add_single_combiner_flags(parser)
    add_objective_flags(parser)
    add_regularizer_flags(parser)
    add_training_flags(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = settled(args, parser, [args.task], "--task")
    check_training_flags(args, parser, tasks)
    settings = mixing_settings(args, parser, tasks)
    settings |= objective_settings(args, parser, tasks)
    settings |= regularizer_settings(args, parser, tasks)
    return train(training_config(args, mode="single", tasks=tasks, **settings), args)
