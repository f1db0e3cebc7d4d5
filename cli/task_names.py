"""Task flags: built-in tasks by name, own tasks by a description of their files, tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.settings_flags import Flags, path
from cli.training import ChosenTasks, settings_file
from common.errors import SettingsError, UserError
from common.repeats import repeated
from common.suggestions import suggestion
from multitask.settings.methods import task_classes
from tasks import TASK_NAMES
from tasks.described import parse_description
from tasks.table_tasks import Table, complete_table, make_table
from tasks.task_description import NAME
from tasks.task_inference import complete_description

FORM = "NAME=FILE:type=...,text=...,label=..."
EXAMPLE = "my=pairs.csv:type=similarity,text=a,text=b,label=score"


@dataclass(frozen=True)
class OwnTask:
    """An own task as typed, before its files are read."""

    name: str
    given: dict[str, Any]


def name_of(one: str | OwnTask) -> str:
    """Return the name of a task as typed."""
    return one if isinstance(one, str) else one.name


def task(text: str) -> str | OwnTask:
    """Parse a value of `--task` or `--tasks`."""
    if NAME.fullmatch(text):  # the configuration checks that the task exists
        return text
    if "=" not in text:
        raise argparse.ArgumentTypeError(
            f"expected the name of a task, or an own task {FORM}, found {text!r}"
            f"{suggestion(text, TASK_NAMES)}"
        )
    try:
        return OwnTask(text.partition("=")[0], parse_description(text))
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

    def add(key: str, help: str, **more: Any) -> None:
        flags.add(key, "tasks", help, common=True, **more)

    add(
        "data_file",
        "file with one text, or pair, and labels in each row; each column of labels is a task; or "
        "a YAML file with the keys train, text, labels, group, id, dev and test",
        metavar="FILE",
        type=path,
    )
    add(
        "text",
        "column of the texts of --data-file, two for pairs",
        nargs="+",
        action="extend",
        metavar="COLUMN",
    )
    add(
        "labels",
        "columns of labels of --data-file; COLUMN:type=...,labels=... sets what is not inferred, "
        "NAME=COLUMN the name of the task",
        nargs="+",
        action="extend",
        metavar="COLUMN",
    )
    add(
        "group",
        "column of --data-file whose equal values, such as a customer's, stay in one split",
        metavar="COLUMN",
    )
    add("id", "column of --data-file with ids (default: row numbers)", metavar="COLUMN")


def table_of(args: argparse.Namespace) -> Table | None:
    """Return the table of `--data-file`, whose rows are not read yet; None without the flag."""
    keys = ("text", "labels", "group", "id")
    given = {key: getattr(args, key, None) for key in keys}
    file = getattr(args, "data_file", None)
    if file is None:
        for key in keys:
            if "data_file" in args and given[key] is not None:
                raise SettingsError(f"{key}: needs --data-file, the table")
        return None
    return make_table(file, given.pop("text") or (), given.pop("labels") or (), given)


def table_names(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the names of the tasks of `--data-file`."""
    table = table_of(args)
    return () if table is None else table.names


def only_task(args: argparse.Namespace, parser: argparse.ArgumentParser) -> ChosenTasks:
    """Return the task of a mode with one task, from `--task` or the file of settings."""
    given = [*([args.task] if args.task else []), *table_names(args)]
    given = given or settings_file(args).get("tasks", ())
    if len(given) != 1:
        flags = "--task, or --labels of --data-file" if table_names(args) else "--task"
        parser.error(f"{flags}: expected one, found {', '.join(map(name_of, given)) or 'none'}")
    return resolve_tasks(args, parser, given, "--task")


def resolve_tasks(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    given: Sequence[str | OwnTask],
    flag: str = "--tasks",
) -> ChosenTasks:
    """Return the tasks; what the description of an own task leaves open is read from its files.

    Raises DescriptionError and DataError with a one-line message.
    """
    names = tuple(map(name_of, given))
    for name in repeated(names):
        parser.error(f"{flag}: expected each task once, found {name} twice")
    stored = settings_file(args).get("own_tasks", {})
    table = table_of(args)
    known = {*task_classes(), *stored}
    known |= set(table.names if table else ())
    for one in given:
        if isinstance(one, str) and one not in known:
            expected = f"one of {', '.join(TASK_NAMES)}, or an own task {FORM}"
            raise SettingsError(
                f"{flag}: expected {expected}, found {one!r}{suggestion(one, known)}"
            )
    typed = [one for one in given if isinstance(one, OwnTask)]
    own = {one.name: complete_description(one.name, one.given).to_json() for one in typed}
    if table:
        described, lines = complete_table(table)
        own |= {one.name: one.to_json() for one in described}
        for line in lines:
            print(line, flush=True)
    return ChosenTasks(names, own)
