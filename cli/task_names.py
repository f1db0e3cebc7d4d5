"""Task flags: built-in tasks by name, own tasks by a description of their files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.settings_flags import Flags
from cli.training import settings_file
from common.errors import SettingsError, UserError
from tasks import TASK_NAMES, task_suggestion
from tasks.described import NAME, parse_description

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
            f"{task_suggestion(text, TASK_NAMES)}"
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


def only_task(args: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """Return the task of a mode with one task, from `--task` or the file of settings."""
    given = [args.task] if args.task else settings_file(args).get("tasks", ())
    if len(given) != 1:
        parser.error(f"--task: expected one, found {', '.join(map(str, given)) or 'none'}")
    return resolve_tasks(args, parser, given, "--task")


def resolve_tasks(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    given: Sequence[str | OwnTask],
    flag: str = "--tasks",
) -> tuple[str, ...]:
    """Return the names of the tasks; set `args.own_tasks` to the own tasks, read from their files.

    Raises DescriptionError and DataError with a one-line message.
    """
    names = tuple(map(name_of, given))
    for name in names:
        if names.count(name) > 1:
            parser.error(f"{flag}: expected each task once, found {name} twice")
    stored = settings_file(args).get("own_tasks", {})
    known = {*TASK_NAMES, *stored, *(one.name for one in getattr(parser, "outside", ()))}
    for one in given:
        if isinstance(one, str) and one not in known:
            expected = f"one of {', '.join(TASK_NAMES)}, or an own task {FORM}"
            raise SettingsError(
                f"{flag}: expected {expected}, found {one!r}{task_suggestion(one, known)}"
            )
    own = [one for one in given if isinstance(one, OwnTask)]
    args.own_tasks = None
    if own:
        # Not needed for --help.
        from tasks.task_inference import complete_description

        args.own_tasks = {
            one.name: complete_description(one.name, one.given).to_json() for one in own
        }
    return names
