"""The tasks there are, and what is read of them: run.py --mode tasks --data DIR

An own task is shown with --task, or checked before it is trained.
"""

from __future__ import annotations

import argparse

from cli.settings_flags import Flags
from cli.task_names import FORM, add_own_task, settled
from tasks import TASK_NAMES

SPLITS = ("train", "dev", "test")
LONGEST = 200  # characters of a line about an example


def add_flags(parser: argparse.ArgumentParser) -> None:
    flags = Flags(parser)
    flags.add_config(("data",))
    add_own_task(flags)
    parser.add_argument(
        "--examples", action="store_true", help="show the first training example of each, too"
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.errors import UserError, one_line
    from reports.tables import text_table
    from tasks import data_folder, find_task
    from tasks.dataset_summary import Found, look

    names = settled(args, parser, [*TASK_NAMES, *(args.further or [])], "--task")
    own = args.own_tasks or {}
    for name in names:
        if name not in TASK_NAMES and name not in own:
            parser.error(f"--task: expected {FORM}, found {name!r}")
    folder = data_folder(args.data or "sample")
    rows: list[list[str]] = []
    shown: list[str] = []
    problems: list[str] = []
    for name in names:
        task, found = find_task(name, own), Found({})
        try:
            found = look(task, folder)
        except UserError as error:
            problems.append(f"{name}: {error}")
        counts = [f"{found.counts[s]:,}" if s in found.counts else "" for s in SPLITS]
        kind = "similarity" if task.kind.classes is None else f"{task.kind.classes} classes"
        rows.append([name, f"{task.texts} text{'s' * (task.texts > 1)}", kind, *counts])
        if args.examples and found.first:
            label = "" if found.label is None else f" -> {found.label}"
            shown.append(f"{name}: {' | '.join(found.first)}{label}")
    print(text_table(["task", "reads", "kind", *SPLITS], rows))
    print(f"\nexamples found in {folder}; nothing where there are no files")
    for line in [*shown, *(f"cannot be read: {problem}" for problem in problems)]:
        print(one_line(line)[:LONGEST])
    return 1 if problems else 0
