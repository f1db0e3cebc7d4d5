"""Tasks on the command line: built-in ones by name, own ones by a description of their files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.settings_flags import Flags
from cli.training import settings_file
from common.errors import SettingsError, UserError
from common.settings import meant
from tasks import TASK_NAMES
from tasks.described import NAME, parse_description

FORM = "NAME=FILE:type=...,text=...,label=..."
EXAMPLE = "my=pairs.csv:type=similarity,text=a,text=b,label=score"


@dataclass(frozen=True)
class OwnTask:
    """An own task as it was typed; its files are not read yet."""

    name: str
    given: dict[str, Any]


def task(text: str) -> str | OwnTask:
    """The type of `--task` and `--tasks`."""
    if NAME.fullmatch(text):  # the configuration knows whether there is one of this name
        return text
    if "=" not in text:
        raise argparse.ArgumentTypeError(
            f"expected the name of a task, or an own task {FORM}, found {text!r}"
        )
    try:
        return OwnTask(text.partition("=")[0], parse_description(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def add_task(flags: Flags, what: str, names: Sequence[str]) -> None:
    """`--task` of modes with one; `names` are the built-in ones that suit it."""
    flags.add(
        "task",
        "tasks",
        f"{what} (required, here or by --config), of {', '.join(names)}; of own data {FORM} such "
        f"as {EXAMPLE}, or NAME=FILE.yaml",
        common=True,
        type=task,
        metavar="TASK",
    )


def add_own_task(flags: Flags) -> None:
    """`--task` beside `--tasks`: further ones, which only own ones need to be."""
    action = flags.add(
        "task",
        "tasks",
        f"a task, without the default ones; of own data {FORM} such as {EXAMPLE}, or "
        "NAME=FILE.yaml; beside those of --tasks, where it is given",
        common=True,
        action="append",
        type=task,
        metavar="TASK",
    )
    action.dest = "further"


def only_task(args: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    """The name of the task of a mode with one, which a file of settings may have."""
    given = [args.task] if args.task else settings_file(args).get("tasks", ())
    if len(given) != 1:
        parser.error(f"--task: expected one, found {', '.join(map(str, given)) or 'none'}")
    return settled(args, parser, given, "--task")


def settled(
    args: argparse.Namespace,
    parser: argparse.ArgumentParser,
    given: Sequence[str | OwnTask],
    flag: str = "--tasks",
) -> tuple[str, ...]:
    """The names of the tasks; `args.own_tasks` learns what the own ones are, from their files.

    Raises DescriptionError and DataError, in one line.
    """
    names = tuple(one if isinstance(one, str) else one.name for one in given)
    for name in names:
        if names.count(name) > 1:
            parser.error(f"{flag}: expected each task once, found {name} twice")
    stored = settings_file(args).get("own_tasks", {})
    known = {*TASK_NAMES, *stored, *(one.name for one in getattr(parser, "outside", ()))}
    for one in given:
        if isinstance(one, str) and one not in known:
            expected = f"one of {', '.join(TASK_NAMES)}, or an own task {FORM}"
            raise SettingsError(f"{flag}: expected {expected}, found {one!r}{meant(one, known)}")
    own = [one for one in given if isinstance(one, OwnTask)]
    args.own_tasks = None
    if own:
        from tasks.task_inference import settle  # what reads files is not needed for --help

        args.own_tasks = {one.name: settle(one.name, one.given).to_json() for one in own}
    return names
