"""Train several tasks on one encoder: run.py --mode multitask --sampling annealed --pcgrad"""

from __future__ import annotations

import argparse

from cli.flags import Parser
from cli.training import add_table, add_tasks, config_of, several_tasks, train, training_flags
from tasks import CS224N


def add_flags(parser: Parser) -> None:
    training_flags(parser, "multitask")
    add_tasks(parser, "sst qqp sts, none with --data-file")
    add_table(parser)


def main(args: argparse.Namespace, parser: Parser) -> int:
    return train(config_of(args, parser, several_tasks(args, CS224N), "multitask"), args)
