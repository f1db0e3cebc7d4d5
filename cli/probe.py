"""Evaluate a frozen encoder on a task: run.py --mode probe --task sst --init RUN

A logistic regression is fitted to the embeddings (linear evaluation). Its regularisation strength
is chosen on dev. The output is a run for --mode compare and --mode ensemble.
"""

import argparse
from functools import partial
from pathlib import Path

from cli.flags import Parser
from cli.training import add_output, add_table, add_task, config_of
from tasks.built_in import WITH_CLASSES


def add_flags(parser: Parser) -> None:
    data = ("data", "limit", "dev_limit", "test_limit", "drop_leaks", "protocol", "tasks")
    parser.add_settings(
        (*data, "seed", "encoder", "pooling", "max_tokens", "init", "precision", "device")
    )
    add_task(parser, WITH_CLASSES)
    add_table(parser)
    add_output(parser)


def main(args: argparse.Namespace, parser: Parser) -> int:
    config = config_of(args, parser)
    (name,) = config.tasks
    if config.tasks[name].build().kind.classes is None:
        parser.error(f"--task: choose a task with classes; {name} has none")

    from multitask.run_folder import write_merged
    from multitask.runs import default_folder
    from pretrain.probe import linear_evaluation
    from reports.run_tables import metric_rows
    from reports.tables import text_table

    folder = Path(args.output or default_folder(config))
    members = [Path(args.init)] if args.init else []
    evaluate = partial(linear_evaluation, config)
    result = write_merged(folder, config.to_json(), members, args.overwrite, evaluate)
    test = {key: result[key] for key in ("test",) if key in result}
    rows = metric_rows({name: result["dev"][name]}, *test.values())
    print(text_table(["task", "metric", "dev", *test], rows))
    print(f"logistic regression with C = {result['strength'][name]:g}, chosen on dev")
    print(f"\npredictions and metrics.json: {folder}")
    return 0
