"""Sweep preferences between tasks: run.py --mode pareto --tasks sst sts --preferences 9"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cli.multitask import add_task_list, distinct_tasks
from cli.training import config_of, run_control, training_flags
from common.argument_types import typed
from multitask.combiners.base import Combiner
from multitask.settings.presets import MODE_DEFAULTS
from tasks import TASK_NAMES

DEFAULT_TASKS = ("sst", "sts")
Rays = Annotated[int, Meta(ge=2, le=100)]


def add_flags(parser: Any) -> None:
    parser.flags = flags = training_flags(
        parser,
        "pareto",
        fits=lambda one: not issubclass(one, Combiner) or getattr(one, "sweeps", False),
        without=("preference", "cones"),
        defaults=MODE_DEFAULTS["pareto"],
        common=("test_limit",),
        always_resumes=True,
    )
    add_task_list(flags, DEFAULT_TASKS)
    flags.add_task_options(TASK_NAMES)
    flags.add(
        "preferences",
        "mixing",
        "minimum number of preference rays, one run each (default: 9); finished runs are kept",
        common=True,
        type=typed(Rays),
        default=9,
        metavar="N",
    )


def main(args: argparse.Namespace, parser: Any) -> int:
    tasks = distinct_tasks(args, parser, DEFAULT_TASKS)
    if len(tasks.names) < 2:
        parser.error(f"--tasks: expected two or more, found only {tasks.names[0]}")
    if args.dry_run:
        parser.error(
            "--dry-run: not accepted in mode pareto; use --mode multitask --dry-run for one run"
        )
    if args.resume:
        parser.error("--resume: not accepted: mode pareto always resumes")
    config = config_of(args, parser, tasks, mode="pareto")

    from multitask.storage.run_names import default_folder
    from reports.front import front_table
    from reports.tables import shown_table
    from studies.pareto import sweep

    folder = Path(args.output or f"{default_folder(config)}-{args.preferences}rays")
    front = sweep(config, args.preferences, folder, run_control(args))
    print()
    header = [*(f"preference of {n}" for n in front.objectives), *front.objectives, "mu"]
    rows = [
        [f"{value:.4f}" for value in (*wish, *losses, mu)]
        for wish, losses, mu in zip(front.preferences, front.losses, front.distances(), strict=True)
    ]
    print(shown_table(header, rows))
    print()
    print(shown_table(*front_table([front])))
    print(f"\nfront.json, front.png and a folder per ray: {folder}")
    return 0
