"""Task flags: built-in tasks by name, own tasks by a description of their files, tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from cli.settings_flags import Flags, path
from cli.training import Chosen, name_of, settings_file
from common.errors import SettingsError, UserError
from tasks.own_task import OwnTask
from tasks.own_tasks import parse, table_tasks

FORM = "NAME=FILE:text=...,label=...,..."
EXAMPLE = "my=pairs.csv:type=similarity,text=a,text=b,label=score"


def task(text: str) -> str | OwnTask:
    """Parse a value of `--task` or `--tasks`."""
    try:
        return parse(text) if "=" in text else text
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_task(flags: Flags, what: str, names: Sequence[str]) -> None:
    """Add `--task` to a mode with one task; `names` are the built-in tasks it accepts."""
    flags.add(
        "task",
        "tasks",
        f"{what} (required, here or by --config): {', '.join(names)}; or an own task {FORM} such "
        f"as {EXAMPLE}, or NAME=FILE.yaml",
        common=True,
        type=task,
        metavar="TASK",
    )


def add_own_task(flags: Flags) -> None:
    """Add `--task` to a mode with `--tasks`, for further tasks such as own ones."""
    action = flags.add(
        "task",
        "tasks",
        f"further task, or an own task {FORM} such as {EXAMPLE}, or NAME=FILE.yaml; "
        "added to --tasks, or used instead of the default tasks",
        common=True,
        action="append",
        type=task,
        metavar="TASK",
    )
    action.dest = "further"


def add_table(flags: Flags) -> None:
    """Add the flags of a table with several columns of labels."""
    several = {"nargs": "+", "action": "extend"}
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "data_file": (
            "file with one text, or pair, and labels in each row; each column of labels is a task; "
            "or a YAML file with the keys train, text, labels, group, id, dev and test",
            {"type": path, "metavar": "FILE"},
        ),
        "text": ("column of the texts of --data-file, two for pairs", several),
        "labels": (
            "columns of labels of --data-file; COLUMN:type=...,labels=... sets what is not "
            "inferred, NAME=COLUMN the name of the task",
            several,
        ),
        "group": (
            "column of --data-file whose equal values, such as a customer's, stay in one split",
            {},
        ),
        "id": ("column of --data-file with ids (default: row numbers)", {}),
    }
    for key, (help, more) in texts.items():
        flags.add(key, "tasks", help, common=True, **{"metavar": "COLUMN", **more})


def table_of(args: argparse.Namespace) -> list[OwnTask]:
    """Return the tasks of `--data-file`; none without the flag."""
    keys = ("text", "labels", "group", "id")
    given: dict[str, Any] = {key: getattr(args, key, None) for key in keys}
    if getattr(args, "data_file", None) is not None:
        return table_tasks(args.data_file, **given)
    for key in (key for key, value in given.items() if value is not None):
        raise SettingsError(f"{key}: needs --data-file, the table")
    return []


def only_task(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Chosen:
    """Return the task of a mode with one task, from `--task` or the file of settings."""
    given = [*([args.task] if args.task else []), *table_of(args)]
    given = given or settings_file(args).get("tasks", ())
    if len(given) != 1:
        found = ", ".join(map(name_of, given)) or "none"
        parser.error(f"--task: expected one, found {found}; --labels of --data-file are tasks, too")
    return completed(given)


def completed(tasks: Iterable[str | OwnTask]) -> Chosen:
    """Return tasks with what the files of own ones say."""
    return tuple(one if isinstance(one, str) else one.completed() for one in tasks)
