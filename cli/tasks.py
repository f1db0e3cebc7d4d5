"""List the tasks and the examples found for them: run.py --mode tasks --data DIR

With --task, an own task is listed and checked before it is trained.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cli.settings_flags import Flags
from cli.task_names import FORM, add_own_task, add_table, resolve_tasks, table_names
from common.errors import UserError, one_line
from tasks import SAMPLE, TASK_NAMES, OwnTasks, data_folder, find_task
from tasks.base import Task
from tasks.readers import Examples

SPLITS = ("train", "dev", "test")
LONGEST = 200  # maximum characters of a line about an example or error


def add_flags(parser: argparse.ArgumentParser) -> None:
    flags = Flags(parser)
    flags.add_settings(("data",))
    add_own_task(flags)
    add_table(flags)
    parser.add_argument(
        "--examples", action="store_true", help="show the first training example of each task"
    )


def main(args: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from reports.tables import text_table

    given = [*TASK_NAMES, *(args.further or []), *table_names(args)]
    chosen = resolve_tasks(args, parser, given, "--task")
    for name in chosen.names:
        if name not in TASK_NAMES and name not in chosen.own:
            parser.error(f"--task: expected {FORM}, found {name!r}")
    folder = data_folder(args.data or SAMPLE)
    if not folder.is_dir():
        raise UserError(f"{folder}: expected a folder with data files, found none")
    every = [about(name, chosen.own, folder, args.examples) for name in chosen.names]
    problems = [one.problem for one in every if one.problem is not None]
    print(text_table(["task", "reads", "kind", *SPLITS], [one.row for one in every]))
    print(f"\nexamples found in {folder}; empty if there are no files")
    for line in [*(line for one in every for line in one.lines), *problems]:
        print(one_line(line)[:LONGEST])
    return 1 if problems else 0


class AboutTask(NamedTuple):
    """A row of the table, lines about a task, and why it cannot be read, None if it can."""

    row: list[str]
    lines: list[str]
    problem: str | None


def about(name: str, own: OwnTasks, folder: Path, example: bool) -> AboutTask:
    """Read the files of a task and describe it, with its first `example` if that is requested."""
    task, problem = find_task(name, own), None
    found: dict[str, Examples] = {}
    try:
        found = read_splits(task, folder)
    except UserError as error:
        problem = f"cannot be read: {name}: {error}"
    cells = [f"{len(found[split]):,}" if split in found else "" for split in SPLITS]
    reads = f"{task.texts} text{'s' * (task.texts > 1)}"
    lines = own_lines(task, own, folder, found) if name in own else []
    if example and "train" in found:
        lines.append(first_example(task, found["train"]))
    row = [name, reads, kind_of(task, own), *cells]
    return AboutTask(row, [f"{name}: {line}" for line in lines], problem)


def kind_of(task: Task, own: OwnTasks) -> str:
    """Return what a task predicts: the number of classes or labels, or the type of numbers."""
    if task.kind.labels is not None:
        return f"{task.kind.labels} labels"
    if task.kind.classes is not None:
        return f"{task.kind.classes} classes"
    return str(own[task.name]["type"]) if task.name in own else "similarity"


def own_lines(task: Task, own: OwnTasks, folder: Path, found: Mapping[str, Examples]) -> list[str]:
    """Return what an own task predicts, and notices about the examples found for it."""
    from tasks.data import reading_notices, small_split_notices
    from tasks.task_description import from_json
    from tasks.task_inference import description_lines

    lines = [*description_lines(from_json(task.name, own[task.name]))]
    for split, examples in found.items():
        lines += reading_notices(task, folder, split, examples)
    return [*lines, *(small_split_notices(task, found) if {"train", "dev"} <= found.keys() else ())]


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
