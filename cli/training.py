"""Flags shared by training modes, their configuration, and the start of training."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cli.settings_flags import USE, Flags, path, typed
from common.entry_point import command_line, if_interrupted, program_command
from common.errors import SettingsError
from common.settings import Count, convert, hints_of_fields
from common.yaml_files import read_settings
from multitask.control import RunControl
from multitask.runs import Run, default_folder
from multitask.settings.config import RunConfig, merged
from multitask.settings.from_flags import nested
from multitask.settings.methods import ROLES
from multitask.settings.presets import preset_settings
from multitask.settings.run_settings import SUPERVISED, RunSettings
from tasks.own_task import OwnTask, tasks_by_name

CONFIG = "file of settings, .json or .yaml, such as a run's config.json; flags override it"


Chosen = tuple[str | OwnTask, ...]  # tasks of a command


def name_of(task: str | OwnTask) -> str:
    return task if isinstance(task, str) else task.name


def training_flags(
    parser: Any,
    mode: str,
    fits: Callable[[Any], bool],
    defaults: Mapping[str, str] = MappingProxyType({}),
    common: tuple[str, ...] = (),
) -> Flags:
    """Add the flags of a training mode: its settings, and the methods of its parts that fit.

    `common` are further settings that `--help` shows, and `defaults` texts about other defaults.
    """
    flags = Flags(parser, parser.everything, defaults, common)
    add_use(flags)
    flags.add("config", "training", CONFIG, metavar="FILE", type=path)
    known = [one for one in fields(RunSettings) if mode in one.metadata.get("modes", (mode,))]
    flags.add_settings(one.name for one in known if one.name not in ROLES)
    for one in known:
        if one.name in ROLES:
            flags.add_methods(one.name, fits if one.name == "objective" else lambda one: True)
    if mode in SUPERVISED:
        flags.add("pcgrad", "mixing", "short for --combiner pcgrad", True, action="store_true")
    add_output_flags(flags)
    return flags


def add_use(flags: Flags) -> None:
    """Add `--use`, whose files are read before the flags are parsed."""
    text = "files with user-defined methods, which get names and flags like built-in methods"
    flags.add("use", "training", text, common=True, **USE)


def add_output_flags(flags: Flags) -> None:
    """Add the flags of the output folder and of existing runs."""
    group = "output"
    flags.add(
        "output",
        group,
        "folder of the run (default: a folder in runs/ named after the configuration)",
        common=True,
        metavar="DIR",
        type=path,
    )
    resume = "resume from the last checkpoint of the run"
    flags.add("resume", group, resume, common=True, action="store_true")
    flags.add(
        "overwrite", group, "start again in a folder that holds a run", True, action="store_true"
    )
    flags.add(
        "checkpoint_every",
        group,
        "also write a checkpoint every N steps; others are written every ten minutes and after "
        "each evaluation",
        metavar="N",
        type=typed(Count),
    )


def run_control(args: argparse.Namespace) -> RunControl:
    """Return the control options given by the flags of the group "output"."""
    return RunControl(
        resume=args.resume,
        overwrite=args.overwrite,
        checkpoint_every=args.checkpoint_every,
        command=command_line(),
    )


def config_of(args: argparse.Namespace, parser: Any, tasks: Chosen, **more: Any) -> RunConfig:
    """Build the configuration from the flags of a mode; raise SettingsError if it is invalid."""
    from_file = settings_file(args)
    if from_file.get("mode", more["mode"]) != more["mode"]:
        raise SettingsError(f"config: it is of mode {from_file['mode']}, not {more['mode']}")
    flat = parser.flags.given(args)
    if getattr(args, "pcgrad", False):
        if flat.get("combiner", "pcgrad") != "pcgrad":
            raise SettingsError(f"pcgrad: --combiner {flat['combiner']} is another combiner")
        flat["combiner"] = "pcgrad"
    if from_file and flat.get("preset") not in (None, from_file.get("preset")):
        line = "the settings in the file of --config would win; write the preset into a new file"
        raise SettingsError(f"preset: {line}")
    preset = flat.get("preset") or from_file.get("preset")
    base = merged(preset_settings(preset, more["mode"]), from_file) if preset else from_file
    given = merged(from_file, {"tasks": tasks})
    given = merged(given, nested(flat, [*map(name_of, tasks)], base))
    if "init" in flat and "encoder" not in flat:
        given["encoder"] = Run(flat["init"]).config.encoder
    return RunConfig(**{**given, **more})


def settings_file(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings in the file of `--config`, or none without it; it is read once."""
    if "from_file" not in args:
        content = read_settings(Path(args.config)) if getattr(args, "config", None) else {}
        if "preset" in content:
            convert("preset", hints_of_fields(RunSettings)["preset"], content["preset"])
        if "tasks" in content:
            content["tasks"] = tasks_by_name(content["tasks"])
        args.from_file = content
    return dict(args.from_file)


def train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train a run in its folder and print its metrics; a finished run is only printed."""
    folder = Path(args.output) if args.output else default_folder(config)
    control = run_control(args)
    if args.resume and not folder.exists():
        print(f"--resume: found no run in {folder}; it starts from the beginning", flush=True)
    again = "--resume continues"
    if args.overwrite:
        again = f"without --overwrite, {again}"
    with if_interrupted(f"{again} from the last checkpoint, if there is one"):
        from multitask.run import complete
        from reports.run_tables import summary

        result = complete(config, folder, control)
    print()
    print(summary(result))
    print(f"\npredictions, metrics.json and checkpoint: {folder}\n")
    words = ["--mode", "probe", "--task", "sst", "--init", str(folder)]
    if not config.pretrains:
        words = [
            "--mode",
            "predict",
            "--run",
            str(folder),
            *(["--use", *args.use] if args.use else []),
        ]
    print(f"next: {shlex.join([*program_command(), *words])}")
    return 0
