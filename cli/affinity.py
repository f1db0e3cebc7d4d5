"""Estimate which tasks help each other: run.py --mode affinity --tasks sst sts qqp

One short joint run on a part of the data, whose gradients are measured after each epoch. The same
command goes on after an interruption.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from cli.multitask import add_task_list, distinct_tasks
from cli.next_commands import command, use_words
from cli.task_names import add_table
from cli.training import config_of, run_control, settings_file, show_plan, training_flags
from common.argument_types import typed
from common.atomic_files import atomic_write_text
from common.entry_point import if_interrupted
from common.errors import SettingsError
from common.settings import Count, Positive
from multitask.affinity.advice import COMMANDS, Advice
from multitask.affinity.estimators import ESTIMATORS
from multitask.affinity.measures import FEWEST_ROUNDS
from multitask.affinity.result import Affinity
from multitask.affinity.run import (
    ADVICE,
    DEFAULT,
    FILE,
    GROUPS,
    ROUNDS,
    faults,
    joint_config,
    measure_affinity,
)
from multitask.storage.run_names import default_folder
from tasks import CS224N, TASK_NAMES

# Of a short run; its scores are not used.
SHORT = {"limit": 2000, "dev_limit": 100, "test_limit": 10}
GROUP = "affinity"


def add_flags(parser: Any) -> None:
    parser.flags = flags = training_flags(
        parser, "affinity", defaults=SHORT, common=("test_limit",), always_resumes=True
    )
    add_task_list(flags, CS224N)
    add_table(flags)
    flags.add_task_options(TASK_NAMES)

    def add(key: str, help: str, **more: Any) -> None:
        flags.add(key, GROUP, help, common=True, **more)

    add(
        "estimator",
        "estimate that groups and report use: cosines of gradients, effects of a step on one task "
        f"on the losses of others, or linear models of losses (default: {DEFAULT}); all are stored",
        choices=ESTIMATORS,
        default=DEFAULT,
    )
    number = typed(Count)
    text = f"largest number of groups of tasks (default: {GROUPS})"
    add("groups", text, type=number, default=GROUPS, metavar="K")
    add(
        "rounds",
        f"largest number of batches of each task measured after an epoch, an even number from "
        f"{FEWEST_ROUNDS} (default: {ROUNDS})",
        type=typed(Annotated[int, Meta(ge=FEWEST_ROUNDS, le=1000, multiple_of=2)]),
        default=ROUNDS,
        metavar="N",
    )
    add(
        "seeds",
        "joint runs, each with another seed (default: 1)",
        type=number,
        default=1,
        metavar="N",
    )
    add(
        "advise",
        "also write which runs to train on all data, with their settings, commands and promised "
        f"gains, to {ADVICE}.json and {ADVICE}/",
        action="store_true",
    )
    add(
        "rates",
        "learning rates of encoder and heads that --advise compares, each in a further short joint "
        "run (default: none, the rate of the joint run is advised)",
        type=typed(Positive),
        nargs="+",
        metavar="RATE",
    )


def main(args: argparse.Namespace, parser: Any) -> int:
    if args.resume:
        parser.error("--resume: not accepted: mode affinity always resumes")
    tasks = distinct_tasks(args, parser, CS224N)
    from_file = settings_file(args)
    has_shots = args.shots is not None or "shots" in from_file
    for key, value in SHORT.items():
        if getattr(args, key) is None and not (key == "limit" and has_shots):
            setattr(args, key, from_file.get(key, value))
    if args.rates and not args.advise:
        parser.error("--rates: expected --advise too, which compares them")
    config = config_of(args, parser, tasks, mode="multitask")
    if args.dry_run:
        for fault in faults(config, args.estimator, args.groups, args.rounds, args.seeds):
            raise SettingsError(fault)
        return show_plan(joint_config(config))
    folder = Path(args.output or f"{default_folder(config)}-affinity")
    if args.advise:
        from multitask.affinity.advisor import advice_faults, advise, check_stored

        for fault in advice_faults(config, args.rates or ()):
            raise SettingsError(fault)
        check_stored(folder, args.estimator)
    control = run_control(args)
    again = "without --overwrite, " if args.overwrite else ""
    with if_interrupted(f"{again}the same command goes on"):
        found = measure_affinity(
            config,
            folder,
            estimator=args.estimator,
            groups=args.groups,
            rounds=args.rounds,
            seeds=args.seeds,
            overwrite=args.overwrite,
            control=control,
        )
        show(found, folder)
        if args.advise:
            advice = advise(found, config, folder, rates=args.rates or (), control=control)
            script = write_commands(advice, folder, args.use or ())
            print(f"\n{advice_text(advice, folder, script)}")
    return 0


def show(found: Affinity, folder: Path) -> None:
    """Write the report, and print its tables."""
    from reports.affinity import (
        PAGE,
        gain_table,
        gain_title,
        group_table,
        notes,
        verdict,
        write_report,
    )
    from reports.figures import FIGURES
    from reports.tables import shown_table

    write_report(found, folder)
    print(f"\n{gain_title(found.estimator)}:\n{shown_table(*gain_table(found))}")
    print(f"\n{shown_table(*group_table(found))}\n\n{verdict(found)}\n{notes(found)}")
    print(f"\n{FILE}, {PAGE}, {FIGURES} and the joint run: {folder}")


def write_commands(advice: Advice, folder: Path, use: Sequence[str]) -> Path:
    """Write a shell script that trains the advised runs, and goes on after an interruption."""
    lines = [
        command(
            *("--mode", run.config.mode, "--config", str(run.settings_file(folder))),
            *("--seed", str(seed), "--output", str(run.folder(folder, seed)), "--resume"),
            *use_words(use),
        )
        for seed in advice.seeds
        for run in advice.runs
    ]
    script = folder / ADVICE / COMMANDS
    atomic_write_text(script, "\n".join(["set -e", shlex.join(["cd", os.getcwd()]), *lines, ""]))
    return script


def advice_text(advice: Advice, folder: Path, script: Path) -> str:
    """Return the advice as text, and how to follow and to check it."""
    from reports.advice import choice_table, system_table
    from reports.tables import shown_table

    compare = command("--mode", "compare", "--advice", str(folder / f"{ADVICE}.json"))
    return (
        f"{shown_table(*choice_table(advice))}\n\n{shown_table(*system_table(advice))}\n"
        f"advised: {advice.best}\n\ncommands of seeds {', '.join(map(str, advice.seeds))}, one "
        f"seed after the other: {script}\nwhen they ran, or some of them: {compare}"
    )
