"""Train one task: python run.py --mode single --task sts"""

from __future__ import annotations

import argparse

from cli.flags import Parser
from cli.training import add_table, add_task, config_of, only_task, train, training_flags
from tasks import TASK_NAMES


def add_flags(parser: Parser) -> None:
    training_flags(parser, "single")
    add_task(parser, TASK_NAMES)
    add_table(parser)


def main(args: argparse.Namespace, parser: Parser) -> int:
    return train(config_of(args, parser, only_task(args, parser), "single"), args)
