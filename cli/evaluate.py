"""Check and score leaderboard files: run.py --mode evaluate --predictions DIR --data DIR

The header, ids and values of every prediction file are checked, for a run also those of its own
tasks. Files of splits with labels are scored. The exit status is 1 if a file has an error.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cli.flags import Parser, path
from common.errors import RunError, one_line
from common.text import suggestion
from multitask.runs import Run, run_of_predictions
from reports.submissions import FileScore, check_folder, pack, score_table
from tasks import CS224N, SAMPLE, build_task, data_folder
from tasks.base import Task
from tasks.own_task import own_tasks_of


def add_flags(parser: Parser) -> None:
    parser.add_argument(
        "--predictions",
        type=path,
        required=True,
        metavar="DIR",
        help="folder of a run, or with files such as sst-dev-output.csv (required)",
    )
    parser.add_argument(
        "--data",
        type=path,
        metavar="DIR",
        help="folder with the CS224N files (default: that of the run in --predictions, else the "
        "bundled sample)",
    )
    parser.add_argument(
        "--tasks",
        nargs="+",
        action="extend",
        metavar="TASK",
        help=f"tasks whose files are required: {', '.join(CS224N)}, or own tasks of a run in "
        "--predictions (default: all that have files)",
    )
    parser.add_argument(
        "--zip",
        type=path,
        metavar="FILE.zip",
        help="pack the files for submission if they are valid; needs dev and test of all tasks",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing zip")


def main(args: argparse.Namespace, parser: Parser) -> int:
    if args.zip:
        check_zip(args, parser)
    folder = Path(args.predictions)
    if (folder / "predictions").is_dir():
        folder = folder / "predictions"
    elif folder.is_file():
        parser.error(f"--predictions: expected a folder, found a file; its folder: {folder.parent}")
    wanted = CS224N if args.zip else args.tasks
    tasks = {name: build_task(name) for name in CS224N} | tasks_of_run(args)
    for name in args.tasks or ():
        if name not in tasks:
            line = f"--tasks: expected some of {', '.join(tasks)}, found {name}"
            parser.error(line + suggestion(name, tasks))
    data = data_of(args)
    checked = check_folder(folder, data_folder(data), tasks, wanted, bool(args.zip))
    if not checked:
        parser.error(f"--predictions: expected files such as sst-dev-output.csv in {folder}")
    for line in data_lines(data, checked, tasks):
        print(one_line(line))
    print(f"\n{score_table(checked)}")
    for note in [note for one in checked for note in one.notes]:
        print(one_line(note))
    problems = [problem for one in checked for problem in one.checked.problems]
    for problem in problems:
        print(one_line(problem), file=sys.stderr)
    if problems and args.zip:
        print(f"{args.zip} was not written", file=sys.stderr)
    if problems:
        return 1
    if args.zip:
        pack([one.checked.file for one in checked], Path(args.zip))
        print(f"\n{len(checked)} files: {args.zip}")
        if data == SAMPLE:
            print("they are predictions of the bundled sample, not of the course's files")
    return 0


def tasks_of_run(args: argparse.Namespace) -> dict[str, Task]:
    """Return the own tasks of a run that have prediction files; none for another folder.

    Print a line for a task whose data are gone, or have changed without ids of rows, and leave it
    out. Raise RunError for a changed one that --tasks names.
    """
    run = run_of_predictions(Path(args.predictions))
    stored = run.read("config.json")
    own = own_tasks_of(stored.get("tasks", ()))
    found = {name: one.build() for name, one in own.items()}
    for name, task in list(found.items()):
        files = [task.source.where(Path(), split) for split in task.source.splits]
        gone = [file for file in files if not Path(file).exists()]
        if gone and name not in (args.tasks or ()):
            print(one_line(f"{name} is not checked: its file {gone[0]} does not exist"))
            del found[name]
        elif own[name].id is None and (file := changed_file(run, task)):
            line = f"{file} has changed since the run, and its rows have no ids"
            if name in (args.tasks or ()):
                raise RunError(f"{name}: {line}; train again")
            print(one_line(f"{name} is not checked: {line}"))
            del found[name]
    return found


def changed_file(run: Run, task: Task) -> Path | None:
    """Return a file that has changed since a run predicted its rows; None without any."""
    from multitask.run_folder import has_changed

    for split in task.source.splits:
        file = Path(task.source.where(Path(), split))
        name = task.output.name(split) if task.output else ""
        if (
            name
            and (run.folder / "predictions" / name).exists()
            and has_changed([run], task.name, split, file)
        ):
            return file
    return None


def data_of(args: argparse.Namespace) -> str:
    """Return the folder of --data, else that of the run in --predictions, else the sample."""
    if args.data is not None:
        return args.data
    stored = run_of_predictions(Path(args.predictions)).read("config.json")
    return str(stored.get("data", SAMPLE))


def data_lines(data: str, checked: Sequence[FileScore], tasks: Mapping[str, Task]) -> Iterator[str]:
    """Yield the data that files were compared with: of the courses' tasks, and of each own task."""
    if any(one.task in CS224N for one in checked):
        where = "the bundled sample" if data == SAMPLE else data
        yield f"data: {where}; --data DIR reads other files"
    for name in dict.fromkeys(one.task for one in checked if one.task not in CS224N):
        splits = [one.split for one in checked if one.task == name]
        files = dict.fromkeys(tasks[name].source.where(data_folder(data), one) for one in splits)
        yield f"data of {name}: {', '.join(files)}"


def check_zip(args: argparse.Namespace, parser: Parser) -> None:
    """Check, before any input is read, that the archive can be written."""
    target = Path(args.zip)
    if args.tasks:
        parser.error(
            "--zip and --tasks: expected at most one of them; a submission has all three tasks"
        )
    if target.suffix != ".zip" or target.is_dir():
        parser.error(f"--zip: expected the name of a file that ends in .zip, found {args.zip}")
    if not target.absolute().parent.is_dir():
        parser.error(f"--zip: expected a folder, found none at {target.parent}")
    if target.exists() and not args.overwrite:
        parser.error(f"--zip: expected a new file, found {args.zip}; --overwrite replaces it")
