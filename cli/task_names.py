"""Task flags: built-in tasks by name, and columns of labels of a file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from cli.settings_flags import Flags, path
from cli.training import Chosen, name_of, settings_file
from common.errors import SettingsError
from tasks.own_task import OwnTask
from tasks.own_tasks import table_tasks


def add_task(flags: Flags, what: str, names: Sequence[str]) -> None:
    """Add `--task` to a mode with one task; `names` are the built-in tasks it accepts."""
    text = f"{what} (required, here, by --labels or by --config): {', '.join(names)}"
    flags.add("task", "tasks", text, common=True, metavar="TASK")


def add_table(flags: Flags) -> None:
    """Add the flags of a file with columns of labels."""
    several = {"nargs": "+", "action": "extend"}
    texts: dict[str, tuple[str, dict[str, Any]]] = {
        "data_file": (
            "file with one text, or pair, and labels in each row, or a folder with train.csv and "
            "dev.csv; each column of --labels is a task",
            {"type": path, "metavar": "FILE"},
        ),
        "text": ("column of the texts of --data-file, two for pairs", several),
        "labels": (
            "columns of labels of --data-file; COLUMN:type=...,labels=... sets what is not "
            "inferred, NAME=COLUMN the name of the task",
            several,
        ),
        "id": ("column of --data-file with ids (default: row numbers)", {}),
    }
    for key, (help, more) in texts.items():
        flags.add(key, "tasks", help, common=True, **{"metavar": "COLUMN", **more})


def table_of(args: argparse.Namespace) -> list[OwnTask]:
    """Return the tasks of `--data-file`; none without the flag."""
    every = {key: getattr(args, key, None) for key in ("text", "labels", "id")}
    given = {key: value for key, value in every.items() if value is not None}
    if getattr(args, "data_file", None) is not None:
        return table_tasks(args.data_file, **given)
    for key in given:
        raise SettingsError(f"{key}: needs --data-file, the table")
    return []


def only_task(args: argparse.Namespace, parser: argparse.ArgumentParser) -> Chosen:
    """Return the task of a mode with one task, from its flags or the file of settings."""
    given = [*([args.task] if args.task else []), *table_of(args)]
    given = given or settings_file(args).get("tasks", ())
    if len(given) != 1:
        found = ", ".join(map(name_of, given)) or "none"
        parser.error(f"--task: expected one, found {found}; --labels of --data-file are tasks, too")
    return tuple(given)
