"""Sweep preferences between tasks: run.py --mode pareto --tasks sst sts --preferences 9"""

from __future__ import annotations

import argparse
from pathlib import Path

from cli.flags import add_training_flags
from cli.mixing import add_combiner_flags, add_mixing_flags, mixing_settings
from cli.multitask import add_task_list, distinct_tasks
from cli.run_config import check_training_flags, run_control, training_config
from cli.values import number

METHODS = ("epo", "linear", "pareto-mtl")


def add_flags(parser: argparse.ArgumentParser) -> None:
    add_task_list(parser, ("sst", "sts"))
    parser.add_argument(
        "--preferences",
        type=number(int, 2, 100),
        default=9,
        metavar="N",
        help="rays of preference, at least (default: 9); a run each, finished ones are kept",
    )
    add_mixing_flags(parser)
    add_combiner_flags(parser, METHODS, cones=False)
    add_training_flags(parser)


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    tasks = distinct_tasks(args, parser)
    if len(tasks) < 2:
        parser.error(f"--tasks: expected two or three, found {tasks[0]} alone")
    args.combiner = args.combiner or METHODS[0]
    check_training_flags(args, parser, tasks)
    if args.dry_run:
        parser.error("--dry-run: expected --mode multitask, which every ray repeats")
    if args.resume:
        parser.error("--resume: expected nothing, for a sweep always goes on where it was")
    settings = mixing_settings(args, parser, tasks)
    settings["keep"] = args.keep or "last"  # dev scores know no rays
    config = training_config(args, mode="pareto", tasks=tasks, **settings)

    from multitask.run_folder import default_folder
    from reports.front import front_table
    from reports.tables import text_table
    from studies.pareto import sweep

    folder = Path(args.output or f"{default_folder(config)}-{args.preferences}rays")
    front = sweep(config, args.preferences, folder, run_control(args))
    print()
    header = [*(f"preference of {n}" for n in front.objectives), *front.objectives, "mu"]
    rows = [
        [f"{value:.4f}" for value in (*wish, *losses, mu)]
        for wish, losses, mu in zip(front.preferences, front.losses, front.distances(), strict=True)
    ]
    print(text_table(header, rows))
    print()
    print(text_table(*front_table([front])))
    print(f"\nfront.json, front.png and a folder a ray: {folder}")
    return 0
