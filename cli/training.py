"""Flags of training modes and of their tasks, the configuration, and the start of training."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cli.flags import LAYOUT, LAYOUT_KEYS, SEVERAL, USE, Parser, path, typed
from common.entry_point import command_line, program_command
from common.errors import SettingsError
from common.settings import Count
from common.yaml_files import read_settings
from multitask.control import RunControl
from multitask.runs import Run, default_folder
from multitask.settings.config import RunConfig, merged, with_defaults
from multitask.settings.from_flags import nested
from multitask.settings.run_settings import SUPERVISED, RunSettings
from tasks.own_task import OwnTask, tasks_by_name
from tasks.own_tasks import layout_keys, table_tasks

Chosen = tuple[str | OwnTask, ...]  # tasks of a command


def name_of(task: str | OwnTask) -> str:
    return task if isinstance(task, str) else task.name


def training_flags(parser: Parser, mode: str) -> None:
    """Add the flags of a training mode: its settings and methods, and those of the output."""
    known = [one.name for one in fields(RunSettings) if mode in one.metadata.get("modes", (mode,))]
    parser.add_settings(known, pretrains=mode == "pretrain")
    if mode in SUPERVISED:
        parser.add("pcgrad", "mixing", "short for --combiner pcgrad", action="store_true")
    add_use(parser)
    text = "file of settings, such as a run's config.json; .json or .yaml; flags override it"
    parser.add("config", "training", text, metavar="FILE", type=path)
    add_output(parser)
    text = "train N runs, with the seeds from --seed on, and print their mean"
    parser.add("seeds", "training", text, metavar="N", type=typed(Count), default=1)
    parser.add("resume", "output", "continue from the last checkpoint", action="store_true")
    text = "also write a checkpoint every N steps, not only after ten minutes and evaluations"
    every: dict[str, Any] = {"common": False, "metavar": "N", "type": typed(Count)}
    parser.add("checkpoint_every", "output", text, **every)


def add_use(parser: Parser) -> None:
    """Add `--use`, whose files are read before the flags are parsed."""
    text = "files with methods of yours; they get names and flags like built-in ones"
    parser.add("use", "training", text, **USE)


def add_output(parser: Parser) -> None:
    """Add the flags of the folder of a run."""
    text = "folder of the run (default: a folder in runs/ named after the configuration)"
    parser.add("output", "output", text, metavar="DIR", type=path)
    text = "start again in a folder that holds a run"
    parser.add("overwrite", "output", text, action="store_true")


def settings_file(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings in the file of `--config`, or none without it; it is read once."""
    if "from_file" not in args:
        args.from_file = read_settings(Path(args.config)) if getattr(args, "config", None) else {}
        if "tasks" in args.from_file:
            args.from_file["tasks"] = tasks_by_name(args.from_file["tasks"])
    return dict(args.from_file)


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
    parser.add("labels", "tasks", text, metavar="NAME", **SEVERAL)
    parser.add("id", "tasks", "its ids (default: row numbers)", common=False, metavar="COLUMN")
    parser.add("table", "tasks", LAYOUT, common=False, **LAYOUT_KEYS)


def table_of(args: argparse.Namespace) -> list[OwnTask]:
    """Return the tasks of `--data-file`; none without the flag."""
    every = {key: getattr(args, key, None) for key in ("text", "labels", "id")}
    given = {key: value for key, value in every.items() if value is not None}
    if getattr(args, "data_file", None) is not None:
        layout = layout_keys(getattr(args, "table", None) or ())
        return table_tasks(args.data_file, **given, **layout)
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


def base_of(args: argparse.Namespace, mode: str) -> dict[str, Any]:
    """Return the settings of the file and of the preset, to which flags are added."""
    base, preset = settings_file(args), getattr(args, "preset", None)
    if base.get("mode", mode) != mode:
        raise SettingsError(f"config: it is of mode {base['mode']}, not {mode}")
    if base and preset not in (None, base.get("preset")):
        line = "the settings in the file of --config would win; write the preset into a new file"
        raise SettingsError(f"preset: {line}")
    return with_defaults({**base, "mode": mode, "preset": preset or base.get("preset")})


def config_of(args: argparse.Namespace, parser: Parser, tasks: Chosen, mode: str) -> RunConfig:
    """Build the configuration from the flags of a mode; raise SettingsError if it is invalid."""
    flat, base = parser.given(args), base_of(args, mode)
    short = getattr(args, "pcgrad", False)
    if short and flat.setdefault("combiner", "pcgrad") != "pcgrad":
        raise SettingsError(f"pcgrad: --combiner {flat['combiner']} is another combiner")
    given = merged(settings_file(args), {"tasks": tasks, "mode": mode})
    given = merged(given, nested(flat, map(name_of, tasks), base))
    if "init" in flat and "encoder" not in flat:
        given["encoder"] = Run(flat["init"]).config.encoder
    return RunConfig(**given)


def train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train a run for each seed and print its metrics, and their mean if there are several."""
    folders = []
    for seed in range(config.seed, config.seed + args.seeds):
        one = replace(config, seed=seed)
        folder = Path(args.output) if args.output else default_folder(one)
        folder = folder / f"seed-{seed}" if args.output and args.seeds > 1 else folder
        train_one(one, folder, args)
        folders.append(folder)
    words = ["--mode", "predict", "--run", str(folders[0])]
    words += ["--use", *args.use] if args.use else []
    if config.pretrains:
        words = ["--mode", "probe", "--task", "sst", "--init", str(folders[0])]
    elif len(folders) > 1:
        from reports.comparison import compare
        from reports.comparison_tables import as_text
        from reports.systems import group_runs

        print(as_text(compare(group_runs([(None, Run(folder)) for folder in folders]))), end="\n\n")
        words = ["--mode", "ensemble", "--runs", *map(str, folders)]
    print(f"next: {shlex.join([*program_command(), *words])}")
    return 0


def train_one(config: RunConfig, folder: Path, args: argparse.Namespace) -> None:
    """Train a run in its folder and print its metrics; a finished run is only printed."""
    control = RunControl(args.resume, args.overwrite, args.checkpoint_every, command=command_line())
    if args.resume and not folder.exists():
        print(f"--resume: found no run in {folder}; it starts from the beginning", flush=True)
    try:
        from multitask.run import complete
        from reports.run_tables import summary

        result = complete(config, folder, control)
    except KeyboardInterrupt as interrupt:
        line = "--resume continues from the last checkpoint, if there is one"
        raise KeyboardInterrupt(line) from interrupt
    print(f"\n{summary(result)}\n\npredictions, metrics.json and checkpoint: {folder}\n")
