"""List the tasks and the examples found for them: run.py --mode tasks --data DIR

With --task, an own task is listed and checked before it is trained.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cli.settings_flags import Flags
from cli.task_names import FORM, add_own_task, add_table, resolve_tasks, table_names
from tasks import SAMPLE, TASK_NAMES

if TYPE_CHECKING:
    from tasks.base import Task
    from tasks.readers import Examples

SPLITS = ("train", "dev", "test")
LONGEST = 200  # maximum characters of a line about an example or error


def add_flags(parser: argparse.ArgumentParser) -> None:
    flags = Flags(parser)
    flags.add_config(("data",))
    add_own_task(flags)
    add_table(flags)
    parser.add_argument(
        "--examples", action="store_true", help="show the first training example of each task"
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from common.errors import UserError, one_line
    from reports.tables import shown_table
    from tasks import data_folder, find_task
    from tasks.data import reading_notices, small_split_notices
    from tasks.task_description import from_json
    from tasks.task_inference import description_lines

    given = [*TASK_NAMES, *(args.further or []), *table_names(args)]
    chosen = resolve_tasks(args, parser, given, "--task")
    own = chosen.own
    for name in chosen.names:
        if name not in TASK_NAMES and name not in own:
            parser.error(f"--task: expected {FORM}, found {name!r}")
    folder = data_folder(args.data or SAMPLE)
    if not folder.is_dir():
        raise UserError(f"{folder}: expected a folder with data files, found none")
    rows: list[list[str]] = []
    lines: list[str] = []
    problems: list[str] = []
    for name in chosen.names:
        task = find_task(name, own)
        found: dict[str, Examples] = {}
        try:
            found = read_splits(task, folder)
        except UserError as error:
            problems.append(f"cannot be read: {name}: {error}")
        kind = "similarity" if task.kind.classes is None else f"{task.kind.classes} classes"
        kind = kind if task.kind.labels is None else f"{task.kind.labels} labels"
        if name in own and task.kind.columns is None:
            kind = str(own[name]["type"])
        cells = [f"{len(found[split]):,}" if split in found else "" for split in SPLITS]
        rows.append([name, f"{task.texts} text{'s' * (task.texts > 1)}", kind, *cells])
        if name in own:
            lines += [f"{name}: {line}" for line in description_lines(from_json(name, own[name]))]
            notices = [
                line
                for split, examples in found.items()
                for line in reading_notices(task, folder, split, examples)
            ]
            if {"train", "dev"} <= found.keys():
                notices += small_split_notices(task, found)
            lines += [f"{name}: {line}" for line in notices]
        if args.examples and "train" in found:
            lines.append(f"{name}: {first_example(task, found['train'])}")
    print(shown_table(["task", "reads", "kind", *SPLITS], rows))
    print(f"\nexamples found in {folder}; empty if there are no files")
    for line in [*lines, *problems]:
        print(one_line(line)[:LONGEST])
    return 1 if problems else 0


def read_splits(task: Task, folder: Path) -> dict[str, Examples]:
    """Read every split that has a file; raise DataError if one cannot be used."""
    from tasks.splits import existing_files

    return {split: task.read(folder, split) for split in existing_files(task.source, folder)}


def first_example(task: Task, examples: Examples) -> str:
    """Format the texts of the first example and its label or class name."""
    texts = " | ".join(column[0] for column in examples.texts)
    if examples.targets is None:
        return texts
    target = examples.targets[0]
    if task.kind.classes:
        return f"{texts} -> {task.kind.names[int(target)]}"
    return f"{texts} -> {task.output.show(target) if task.output else f'{target:g}'}"
