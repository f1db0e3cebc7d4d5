"""Flags shared by training modes, their configuration, and the start of training."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cli.next_commands import next_commands
from cli.settings_flags import USE, Flags, of_tasks, path
from common.argument_types import typed
from common.entry_point import command_line, if_interrupted
from common.errors import SettingsError
from common.settings import Count, Name, Settings, convert
from common.yaml_files import read_settings
from multitask.control import Every, RunControl, parse_every
from multitask.run_folder import RunFolder, default_folder
from multitask.settings.config import RunConfig, settings_of_mode
from multitask.settings.methods import METHOD_ROLES, UserMethods, methods
from multitask.settings.presets import preset_of, preset_values
from multitask.settings.rules import unused_faults
from multitask.settings.user_methods import check_use

VERBOSE = "report the tensors of the encoder's folder that are not used"
LEAKS = (
    "leave out training examples that are also in dev or test (default: keep them); own: in those "
    "of the same task; all (or no value): also in those of sst, qqp and sts"
)

CONFIG = "file of settings, .json or .yaml, such as a run's config.json; flags override it"
# Flag -> setting in a file.
NAMES_IN_FILES = {"task": "tasks: [NAME]", "pcgrad": "combiner: pcgrad"}
Fits = Callable[[type[Settings]], bool]


@dataclass(frozen=True)
class ChosenTasks:
    """The tasks of a command: all names, and the descriptions of the own tasks typed in it."""

    names: tuple[str, ...] = ()
    own: Mapping[str, Any] = field(default_factory=dict)


def training_flags(
    parser: Any,
    mode: str,
    fits: Fits = of_tasks,
    without: tuple[str, ...] = (),
    defaults: Mapping[str, Any] | None = None,
    common: tuple[str, ...] = (),
    role_helps: Mapping[str, str] = MappingProxyType({}),
    always_resumes: bool = False,
) -> Flags:
    """Add the flags of a training mode: its settings, and the methods of its parts that fit.

    `without` are settings of methods that get no flag, because the mode sets them; `common` are
    further settings that `--help` shows, and `defaults` and `role_helps` those of `Flags`. A mode
    that `always_resumes` refuses `--resume`.
    """
    flags = Flags(parser, parser.everything, defaults or {}, common, role_helps)
    add_use(flags)
    flags.add("config", "training", CONFIG, metavar="FILE", type=path)
    known = settings_of_mode(mode)
    plain = [
        key
        for key, one in known.items()
        if key not in METHOD_ROLES and one.metadata.get("flag", True) is True
    ]
    flags.add_config(plain)
    add_drop_leaks(flags)
    chosen = {
        role: {name: one for name, one in methods(role, parser.outside).items() if fits(one)}
        for role in METHOD_ROLES
        if role in known
    }
    flags.add_methods(chosen, without)
    add_output_flags(flags, always_resumes)
    return flags


def add_use(flags: Flags) -> None:
    """Add `--use`, whose files are read before the flags are parsed."""
    text = "files with user-defined methods, which get names and flags like built-in methods"
    flags.add("use", "training", text, common=True, **USE)


def add_drop_leaks(flags: Flags) -> None:
    """Add `--drop-leaks`, which may have a value."""
    flags.add("drop_leaks", "data", LEAKS, nargs="?", const="all", metavar="{all,own}")


def add_output_flags(flags: Flags, always_resumes: bool) -> None:
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
    flags.add(
        "dry_run",
        group,
        "show examples, passes and steps of every epoch without training",
        common=True,
        action="store_true",
    )
    resume = "resume from the last checkpoint of the run"
    if always_resumes:
        resume = "not accepted: this mode always resumes"
    flags.add("resume", group, resume, not always_resumes, action="store_true")
    flags.add(
        "overwrite", group, "start again in a folder that holds a run", True, action="store_true"
    )
    flags.add("verbose", group, VERBOSE, action="store_true")
    flags.add(
        "checkpoint_every",
        group,
        "write a checkpoint every N steps or after a time such as 90s, 10m or 2h, in addition to "
        "those at each evaluation and interruption (default: 10m)",
        metavar="N|TIME",
        type=every,
        default=RunControl.checkpoint_every,
    )
    flags.add(
        "skip_limit",
        group,
        "stop after N consecutive steps whose loss or gradient is not finite; fewer are skipped "
        f"and counted (default: {RunControl.skip_limit})",
        metavar="N",
        type=typed(Count),
        default=RunControl.skip_limit,
    )


def every(text: str) -> Every:
    """Parse an interval in steps or time."""
    try:
        return parse_every(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, found {text!r}") from error


def run_control(args: argparse.Namespace) -> RunControl:
    """Return the control options given by the flags of the group "output"."""
    return RunControl(
        resume=args.resume,
        overwrite=args.overwrite,
        verbose=args.verbose,
        checkpoint_every=args.checkpoint_every,
        skip_limit=args.skip_limit,
        command=command_line(),
    )


def config_of(args: argparse.Namespace, parser: Any, tasks: ChosenTasks, **mode: Any) -> RunConfig:
    """Build the configuration from the flags of a mode; raise SettingsError if it is invalid."""
    given = parser.flags.given(args, tasks.names)
    from_file = settings_file(args)
    check_use(convert("use", dict[str, str], from_file.pop("use", {})), parser.outside)
    if from_file.get("mode", mode["mode"]) != mode["mode"]:
        raise SettingsError(f"config: expected mode {mode['mode']}, found {from_file['mode']}")
    check_preset(given.get("preset"), from_file, mode["mode"])
    add_short_forms(given, args)
    from_file = without_replaced(from_file, given, parser.outside)
    if leaks := getattr(args, "drop_leaks", None):
        given |= {"drop_leaks": True, "leaks_of": leaks}
    stored = from_file.get("own_tasks", {})
    kept = {name: one for name, one in stored.items() if name in tasks.names}
    if own := {**kept, **tasks.own}:
        given["own_tasks"] = own
    if "init" in given and "encoder" not in given:
        given["encoder"] = RunFolder(Path(given["init"])).encoder()
    every = {**from_file, **given, "tasks": tasks.names, **mode}
    config = RunConfig.from_flat(every, parser.outside)
    for fault in unused_faults(config, given):
        raise SettingsError(fault)
    return config


def without_replaced(
    from_file: Mapping[str, Any], given: Mapping[str, Any], user_methods: UserMethods
) -> dict[str, Any]:
    """Return the settings of a file without those that only methods have which flags replace.

    Regularisers stay: a run may have several, and a flag adds one.
    """
    roles = [role for role in METHOD_ROLES if role != "regularizers"]

    def keys(settings: Mapping[str, Any]) -> set[str]:
        used = (methods(role, user_methods).get(str(settings.get(role))) for role in roles)
        return {key for one in used if one is not None for key in one.by_key()}

    gone = keys(from_file) - keys({**from_file, **given})
    return {key: value for key, value in from_file.items() if key not in gone}


def check_preset(name: Any, from_file: Mapping[str, Any], mode: str) -> None:
    """Raise SettingsError if the file has all settings of a preset, which then changes nothing."""
    values = preset_values(name, mode)
    if values and name != from_file.get("preset") and values.keys() <= from_file.keys():
        raise SettingsError(
            f"preset {name}: expected a setting that is not in the file of --config, found "
            f"{', '.join(values)} there; remove them from it, or give them as flags"
        )


def add_short_forms(given: dict[str, Any], args: argparse.Namespace) -> None:
    """Add the settings for which `--pcgrad` is short."""
    if getattr(args, "pcgrad", False):
        if given.get("combiner", args.pcgrad) != args.pcgrad:
            raise SettingsError(f"pcgrad and combiner {given['combiner']}: expected one combiner")
        given["combiner"] = args.pcgrad


def settings_file(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings in the file of `--config`, or none without it."""
    if not hasattr(args, "from_file"):
        content = read_settings(Path(args.config)) if getattr(args, "config", None) else {}
        for key in NAMES_IN_FILES.keys() & content.keys():
            line = f"expected {NAMES_IN_FILES[key]!r}, found {key!r}"
            raise SettingsError(f"{args.config}: {line}")
        convert("tasks", tuple[Name, ...], content.get("tasks", ()))
        convert("own_tasks", dict[str, dict[str, Any]], content.get("own_tasks", {}))
        args.from_file = content
    return dict(args.from_file)


def train(config: RunConfig, args: argparse.Namespace) -> int:
    """Train a run in its folder and print its metrics; a finished run is only printed."""
    folder = Path(args.output) if args.output else default_folder(config)
    control = run_control(args)
    if args.dry_run:
        return show_plan(config)
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
    print(next_commands(config, folder, args.use or ()))
    return 0


def show_plan(config: RunConfig) -> int:
    """Print examples, passes and steps of every epoch and task."""
    from multitask.dry_run import dry_run_rows
    from multitask.precision import precision_before_loading
    from reports.tables import text_table

    if config.preset is not None:
        preset = preset_of(config.preset)
        used = {key: str(value) for key, value in config.flat().items()}
        settings = [
            [key, used.get(key, ""), source]
            for key, (_, source) in preset.of_mode(config.mode).items()
        ]
        print(f"preset {config.preset}: {preset.paper}")
        print(text_table(["setting", "this run", "of the paper"], settings) + "\n")
    if config.precision == "auto":
        print(precision_before_loading(config))
    rows = dry_run_rows(config)
    header = ["epoch", "task", "examples", "passes", "batches", "steps"]
    print(text_table(header, rows))
    return 0
