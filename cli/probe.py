"""What a frozen encoder knows of a task: run.py --mode probe --task sst --init RUN

A logistic regression on its embeddings (linear evaluation); its strength is chosen on dev. The
folder is a run's, to be compared and merged like any other.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import PRECISIONS, add_encoder_flags, add_machine_flags
from cli.protocol import add_pair_flag, add_protocol_flags, check_protocol
from cli.run_config import check_encoder, training_config
from cli.task_names import add_task, has_classes, settled
from cli.values import COUNT, default, limit, number, path
from tasks import TASK_NAMES


def add_flags(parser: argparse.ArgumentParser) -> None:
    classes = [name for name in TASK_NAMES if has_classes(argparse.Namespace(), name)]
    add_task(parser, "the task to look at", classes)
    data = parser.add_argument_group("data")
    data.add_argument(
        "--data", type=path, metavar="DIR", help="folder with the task's files" + default("data")
    )
    data.add_argument(
        "--limit",
        type=limit,
        nargs="+",
        metavar="N",
        help="fit on N examples, drawn at random, or of a share of them; TASK=N for one task",
    )
    data.add_argument("--dev-limit", type=COUNT, metavar="N", help="choose on N dev examples alone")
    data.add_argument(
        "--seed",
        type=number(int, 0, 2**32 - 1),
        metavar="N",
        help="of the examples that a --protocol draws" + default("seed"),
    )
    encoder = parser.add_argument_group("encoder")
    add_protocol_flags(data)
    add_pair_flag(encoder)
    add_encoder_flags(encoder)
    encoder.add_argument(
        "--init", type=path, metavar="RUN", help="the encoder of the best epoch of a run"
    )
    encoder.add_argument(
        "--precision", choices=PRECISIONS, help="of the encoder" + default("precision")
    )
    add_machine_flags(encoder)
    output = parser.add_argument_group("output")
    output.add_argument("--output", type=path, metavar="DIR", help="folder for what is found")
    output.add_argument("--overwrite", action="store_true", help="replace another run there")


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = settled(args, parser, [args.task], "--task")
    if not has_classes(args, tasks[0]):
        parser.error(f"--task: expected a task with classes, found {tasks[0]}")
    check_protocol(args, parser, tasks)
    check_encoder(args, parser)
    config = training_config(args, mode="probe", tasks=tasks)

    from multitask.run_folder import default_folder
    from pretrain.probe import linear_evaluation
    from reports.merged_run import check_output, write_merged_run
    from reports.tables import text_table

    folder = Path(args.output or default_folder(config))
    members = [Path(args.init)] if args.init else []
    check_output(folder, config.to_json(), members, args.overwrite)
    result, tables = linear_evaluation(config)
    write_merged_run(folder, config.to_json(), result, tables)
    found = {split: result[split] for split in ("dev", "test") if split in result}
    rows = [
        [tasks[0], metric, *(f"{figures[tasks[0]][metric]:.4f}" for figures in found.values())]
        for metric in found["dev"][tasks[0]]
    ]
    print(text_table(["task", "metric", *found], rows))
    print(f"logistic regression with C = {result['strength'][tasks[0]]:g}, chosen on dev")
    print(f"\npredictions and metrics.json: {folder}")
    return 0
