"""Task flags: built-in tasks by name, and columns of labels of a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cli.flags import SEVERAL, Parser, path
from cli.training import Chosen, name_of, settings_file
from common.errors import SettingsError
from tasks.own_task import OwnTask
from tasks.own_tasks import table_tasks


def add_task(parser: Parser, names: Sequence[str]) -> None:
    """Add `--task` to a mode with one task; `names` are the built-in tasks it accepts."""
    text = f"the task; {', '.join(names)} (required, here, by --labels or by --config)"
    parser.add("task", "tasks", text, metavar="TASK")


def add_tasks(parser: Parser, default: str) -> None:
    """Add `--tasks`; without it and `--data-file`, the tasks are as `default` says."""
    text = f"the tasks; --mode tasks lists them (default: {default})"
    parser.add("tasks", "tasks", text, metavar="TASK", **SEVERAL)


def add_table(parser: Parser) -> None:
    """Add the flags of a file with columns of labels."""
    text = "file with texts and labels; or a folder with train.csv and dev.csv"
    parser.add("data_file", "tasks", text, metavar="FILE", type=path)
    parser.add("text", "tasks", "its texts, two columns for pairs", metavar="COLUMN", **SEVERAL)
    text = (
        "its columns of labels, a task each; COLUMN:type=...,labels=... sets what is not "
        "inferred, NAME=COLUMN the name of the task"
    )
    parser.add("labels", "tasks", text, metavar="COLUMN", **SEVERAL)
    parser.add("id", "tasks", "its ids (default: row numbers)", common=False, metavar="COLUMN")


def table_of(args: argparse.Namespace) -> list[OwnTask]:
    """Return the tasks of `--data-file`; none without the flag."""
    every = {key: getattr(args, key, None) for key in ("text", "labels", "id")}
    given = {key: value for key, value in every.items() if value is not None}
    if getattr(args, "data_file", None) is not None:
        return table_tasks(args.data_file, **given)
    for key in given:
        raise SettingsError(f"{key}: needs --data-file, the table")
    return []


def only_task(args: argparse.Namespace, parser: Parser) -> Chosen:
    """Return the task of a mode with one task, from its flags or the file of settings."""
    given = [*([args.task] if args.task else []), *table_of(args)]
    given = given or settings_file(args).get("tasks", ())
    if len(given) != 1:
        found = ", ".join(map(name_of, given)) or "none"
        parser.error(f"--task: expected one, found {found}; --labels of --data-file are tasks, too")
    return tuple(given)


def several_tasks(args: argparse.Namespace, default: tuple[str, ...]) -> Chosen:
    """Return the tasks of the flags, or else of the file of settings, or else the `default`."""
    own = table_of(args)
    tasks = args.tasks
    if tasks is None:
        tasks = [] if own else settings_file(args).get("tasks", default)
    return (*tasks, *own)
