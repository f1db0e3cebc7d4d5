"""List the tasks and the examples found for them: run.py --mode tasks --data DIR

With --data-file, own tasks are listed and checked before they are trained.
"""

import argparse
from pathlib import Path

from cli.flags import Parser
from cli.training import add_table, table_of
from common.errors import UserError, one_line
from common.text import counted
from tasks import SAMPLE, TASK_NAMES, build_task, data_folder
from tasks.own_task import FILES, OwnTask
from tasks.readers import Examples


def add_flags(parser: Parser) -> None:
    parser.add_settings(("data",))
    add_table(parser)


def main(args: argparse.Namespace, parser: Parser) -> int:
    from reports.tables import text_table

    folder = data_folder(args.data or SAMPLE)
    if not folder.is_dir():
        raise UserError(f"{folder}: expected a folder with data files, found none")
    lines, problems = list[str](), list[str]()
    chosen: list[str | OwnTask] = [*table_of(args), *TASK_NAMES]
    rows = [row_of(one, folder, lines, problems) for one in chosen]
    print(text_table(["task", "reads", "kind", *FILES], rows))
    print(f"\nexamples found in {folder}; empty if there are no files")
    for line in [*lines, *problems]:
        print(one_line(line)[:200])
    return 1 if problems else 0


def row_of(one: str | OwnTask, folder: Path, lines: list[str], problems: list[str]) -> list[str]:
    """Return the row of a task; add lines about an own task, and why a task cannot be read."""
    from reports.examples import shown_answer
    from tasks.data import reading_notices
    from tasks.splits import doubts, existing_files

    task, found = build_task(one) if isinstance(one, str) else one.build(), dict[str, Examples]()
    try:
        found |= {split: task.read(folder, split) for split in existing_files(task.source, folder)}
    except UserError as error:
        problems.append(f"cannot be read: {task.name}: {error}")
    if isinstance(one, OwnTask):
        about = [*one.lines(), *reading_notices(task, folder, found)]
        if (train := found.get("train")) is not None and train.targets is not None:
            texts = " | ".join(column[0] for column in train.texts)
            about += doubts(task, found)
            about.append(f"{texts} -> {shown_answer(task, train.targets[0])}")
        lines += [f"{task.name}: {line}" for line in about]
    kind = "similarity" if isinstance(one, str) else str(one.type)
    if task.kind.columns is not None:
        kind = f"{task.kind.columns} {'classes' if task.kind.classes else 'labels'}"
    cells = [f"{len(found[split]):,}" if split in found else "" for split in FILES]
    return [task.name, counted(task.texts, "text"), kind, *cells]
