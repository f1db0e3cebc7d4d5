"""The configuration that the flags of training modes make, and which of them contradict."""

from __future__ import annotations

import argparse
import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cli.protocol import check_protocol
from cli.values import DEFAULTS
from multitask.choices import TASK_OPTIONS
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.errors import SettingsError
from multitask.schedule import FIRST
from multitask.stored import encoder_of
from tasks import PAIRS


def run_control(args: argparse.Namespace) -> RunControl:
    """What the flags of the group "output" say of the run in its folder."""
    return RunControl(
        resume=args.resume,
        overwrite=args.overwrite,
        verbose=args.verbose,
        checkpoint_every=args.checkpoint_every,
        skip_limit=args.skip_limit,
        command=shlex.join(["python", *sys.argv]) if sys.argv[0].endswith("run.py") else None,
    )


def training_config(
    args: argparse.Namespace, defaults: RunConfig | None = None, **mode: Any
) -> RunConfig:
    """The configuration that the shared flags and a mode's own settings describe."""
    given = {f.name: getattr(args, f.name, None) for f in fields(RunConfig)}
    given = {name: value for name, value in given.items() if value is not None}
    limits = given.get("limit")
    if isinstance(limits, list):
        given["limit"] = limits_by_task(limits, mode["tasks"])
    if getattr(args, "init", None) is not None:
        given["encoder"] = encoder_of(Path(args.init))
    if "drop_leaks" in given:
        given |= {"drop_leaks": True, "leaks_of": given["drop_leaks"]}
    options = {
        task: {
            option: getattr(args, f"{task}_{option}")
            for option, choices in TASK_OPTIONS.get(task, {}).items()
            if getattr(args, f"{task}_{option}", None) not in (None, choices[0])
        }
        for task in mode["tasks"]
    }
    if getattr(args, "pair", None) == "joint":
        for task in PAIRS:
            if task in options:
                options[task]["pair"] = args.pair
    if getattr(args, "classes", None):
        for task in options:
            options[task]["classes"] = str(args.classes)
    options = {task: given for task, given in options.items() if given}
    return replace(defaults or DEFAULTS, **(given | {"task_options": options} | mode))


def limits_by_task(
    given: list[tuple[str | None, int | float]], tasks: tuple[str, ...]
) -> int | float | dict[str, int | float]:
    """What `--limit` says: one number for all tasks, or a number by task."""
    names = [task for task, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise SettingsError(f"--limit: expected one for {name or 'all tasks'}, found several")
    by_task = dict(given)
    rest = by_task.pop(None, None)
    if not by_task and rest is not None:
        return rest
    every = {} if rest is None else dict.fromkeys(tasks, rest)
    return every | {str(task): value for task, value in by_task.items()}


def check_training_flags(
    args: argparse.Namespace, parser: argparse.ArgumentParser, tasks: tuple[str, ...]
) -> None:
    """Refuse flags that would do nothing, or that contradict each other."""
    for task, options in TASK_OPTIONS.items():
        for option in options:
            if task not in tasks and getattr(args, f"{task}_{option}", None) is not None:
                parser.error(
                    f"--{task}-{option}: expected {task} among the tasks, found {', '.join(tasks)}"
                )
    check_protocol(args, parser, tasks)
    if args.resume and args.overwrite:
        parser.error("--resume and --overwrite: expected at most one of them")
    check_encoder(args, parser)
    if args.keep == "last" and args.patience is not None:
        parser.error("--keep last and --patience: expected one of them")
    if args.probe_epochs is not None:
        if args.freeze_encoder:
            parser.error("--probe-epochs and --freeze-encoder: expected one of them")
        epochs = args.epochs or DEFAULTS.epochs
        if args.probe_epochs >= epochs:
            parser.error(
                f"--probe-epochs: expected fewer than --epochs {epochs}, found {args.probe_epochs}"
            )
        if getattr(args, "sampling", None) == "hybrid" or getattr(args, "schedule", None) == FIRST:
            parser.error(
                "--probe-epochs: expected all tasks in the first epochs, found one alone "
                f"(--sampling hybrid or --schedule {FIRST})"
            )
    if args.freeze_encoder and args.lr is not None:
        parser.error("--freeze-encoder and --lr: expected --head-lr alone")
    if args.init and args.output and Path(args.init).resolve() == Path(args.output).resolve():
        parser.error("--init and --output: expected two folders, found the same")


def check_encoder(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """Refuse another encoder than that of the run to start from."""
    if args.init is not None and args.encoder is not None:
        brought = encoder_of(Path(args.init))
        if args.encoder != brought:
            parser.error(
                f"--encoder: expected {brought}, which --init brings, found {args.encoder}"
            )
