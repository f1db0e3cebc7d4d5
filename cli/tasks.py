"""List the tasks and the examples found for them: run.py --mode tasks --data DIR

With --data-file, own tasks are listed and checked before they are trained.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from cli.flags import Parser
from cli.task_names import add_table, table_of
from common.errors import UserError, one_line
from tasks import SAMPLE, TASK_NAMES, build_task, data_folder
from tasks.base import Task
from tasks.own_task import OwnTask
from tasks.readers import Examples

SPLITS = ("train", "dev", "test")
LONGEST = 200  # maximum characters of a line about an example or error


def add_flags(parser: Parser) -> None:
    parser.add_settings(("data",))
    add_table(parser)
    parser.add_argument(
        "--examples", action="store_true", help="show the first training example of each task"
    )


def main(args: argparse.Namespace, parser: Parser) -> int:
    from reports.tables import text_table

    folder = data_folder(args.data or SAMPLE)
    if not folder.is_dir():
        raise UserError(f"{folder}: expected a folder with data files, found none")
    chosen: list[str | OwnTask] = [*TASK_NAMES, *table_of(args)]
    every = [about(one, folder, args.examples) for one in chosen]
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


def about(one: str | OwnTask, folder: Path, example: bool) -> AboutTask:
    """Read the files of a task and describe it, with its first `example` if that is requested."""
    task, problem = build_task(one) if isinstance(one, str) else one.build(), None
    found: dict[str, Examples] = {}
    try:
        found = read_splits(task, folder)
    except UserError as error:
        problem = f"cannot be read: {task.name}: {error}"
    cells = [f"{len(found[split]):,}" if split in found else "" for split in SPLITS]
    reads = f"{task.texts} text{'s' * (task.texts > 1)}"
    lines = [] if isinstance(one, str) else own_lines(one, task, folder, found)
    if example and "train" in found:
        lines.append(first_example(task, found["train"]))
    kind = "similarity" if isinstance(one, str) else str(one.type)
    if task.kind.columns is not None:
        kind = f"{task.kind.columns} {'classes' if task.kind.classes else 'labels'}"
    row = [task.name, reads, kind, *cells]
    return AboutTask(row, [f"{task.name}: {line}" for line in lines], problem)


def own_lines(own: OwnTask, task: Task, folder: Path, found: Mapping[str, Examples]) -> list[str]:
    """Return what an own task predicts, and what was left out of its splits."""
    from tasks.data import reading_notices

    return [*own.lines(), *reading_notices(task, folder, found)]


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
