"""Train, as in: --mode single --task sst; --mode multitask; --mode pretrain --objective simcse"""

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml

from cli.flags import LAYOUT, SEVERAL, USE, Parser, path, typed
from common.entry_point import program
from common.errors import RunError, SettingsError
from common.settings import Count, methods
from losses.objectives import PretrainObjective
from multitask.runs import Run, default_folder
from multitask.settings.config import RunConfig, as_mapping, merged, with_defaults
from multitask.settings.from_flags import nested
from multitask.settings.run_settings import SUPERVISED, RunSettings
from tasks import CS224N, SAME_MEANING, TASK_NAMES
from tasks.own_task import OwnTask
from tasks.own_tasks import layout_keys, table_tasks, tasks_by_name


def add_flags(parser: Parser) -> None:
    """Add the flags of a training mode: its settings and methods, and those of the output."""
    mode = parser.mode
    known = [one.name for one in fields(RunSettings) if mode in one.metadata.get("modes", (mode,))]
    parser.add_settings(known)
    if mode == "single":
        add_task(parser, TASK_NAMES)
    else:
        default = "those that fit --objective" if mode == "pretrain" else "sst qqp sts"
        text = f"the tasks; --mode tasks lists them (default: {default}; with a file: none)"
        parser.add("tasks", "tasks", text, metavar="TASK", **SEVERAL)
    if mode in SUPERVISED:
        add_table(parser)
        to: dict[str, Any] = {"dest": "combiner", "action": "store_const", "const": "pcgrad"}
        parser.add("pcgrad", "mixing", "short for --combiner pcgrad", **to)
    text = "file of settings, such as a run's config.json; .json or .yaml; flags override it"
    parser.add("config", "training", text, metavar="FILE", type=path)
    add_output(parser)
    text = "train a run for each of N seeds, from --seed on; print their mean"
    parser.add("seeds", "training", text, metavar="N", type=typed(Count), default=1)
    parser.add("resume", "output", "continue from the last checkpoint", action="store_true")
    text = "also write a checkpoint every N steps, not only after ten minutes and evaluations"
    count = typed(Count)
    parser.add("checkpoint_every", "output", text, common=False, metavar="N", type=count)


def add_output(parser: Parser) -> None:
    """Add `--use`, whose files are read before the flags are parsed, and the folder of a run."""
    text = "files with your own methods; they get names and flags like built-in ones"
    parser.add("use", "training", text, **USE)
    text = "folder of the run (default: a folder in runs/ named after the configuration)"
    parser.add("output", "output", text, metavar="DIR", type=path)
    text = "start again in a folder that holds a run"
    parser.add("overwrite", "output", text, action="store_true")


def add_task(parser: Parser, names: Sequence[str]) -> None:
    """Add `--task` to a mode with one task; `names` are the built-in tasks it accepts."""
    text = f"the task; {', '.join(names)} (required, unless --labels or --config names it)"
    parser.add("task", "tasks", text, metavar="TASK", dest="tasks", nargs=1)


def add_table(parser: Parser) -> None:
    """Add the flags of a file with columns of labels."""
    text = "file with texts and labels; or a folder with train.csv and dev.csv"
    parser.add("data_file", "tasks", text, metavar="FILE", type=path)
    parser.add("text", "tasks", "column of texts, two for pairs", metavar="COLUMN", **SEVERAL)
    text = "columns of labels, a task each; COLUMN, NAME=COLUMN or COLUMN:type=...,labels=..."
    parser.add("labels", "tasks", text, metavar="NAME", **SEVERAL)
    parser.add("id", "tasks", "ids (default: row numbers)", common=False, metavar="COLUMN")
    parser.add("table", "tasks", common=False, **LAYOUT)


def table_of(args: argparse.Namespace) -> list[OwnTask]:
    """Return the tasks of `--data-file`; none without the flag."""
    if "labels" not in args:
        return []
    given = {key: one for key in ("text", "labels", "id") if (one := getattr(args, key))}
    if args.data_file is not None:
        return table_tasks(args.data_file, **given, **layout_keys(args.table))
    for key in given:
        raise SettingsError(f"{key}: needs --data-file, the file with this column")
    return []


def default_tasks(mode: str, given: Mapping[str, Any]) -> Sequence[str]:
    """Return the tasks of a mode without flags for them, from the settings of its objective.

    Pre-training uses their texts, or else those of a file.
    """
    if mode != "pretrain":
        return CS224N if mode == "multitask" else ()
    known = methods(PretrainObjective)
    objective = known.get(str(given.get("objective") or given.get("name")))
    if objective is None:
        raise SettingsError(f"objective: mode pretrain needs one of {', '.join(known)}")
    if given.get("data_file") or objective.needs_file:
        return ()
    several = SAME_MEANING if objective.of_pairs else CS224N
    return ("sst",) if objective.of_classes else tuple(several)


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings in a .json or .yaml file; raise RunError for other content.

    Aliases and tags of YAML are refused: a short file with aliases can stand for an endless one.
    """
    kind = msgspec.yaml if file.suffix in (".yaml", ".yml") else msgspec.json
    try:
        content = file.read_bytes()
        for event in yaml.parse(content, yaml.CSafeLoader) if kind is msgspec.yaml else ():
            if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None):
                raise ValueError(f"an alias or a tag in line {event.start_mark.line + 1}")
        return kind.decode(content, type=dict[str, Any])
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise RunError(f"{file}: the settings cannot be read: {error}") from error


def config_of(args: argparse.Namespace, parser: Parser) -> RunConfig:
    """Build the configuration from the file of settings and the flags of a mode.

    Tasks are those of the flags, or else of the file, or else the default ones. Raise SettingsError
    for an invalid configuration.
    """
    mode, flat = parser.mode, parser.given(args)
    config, preset = getattr(args, "config", None), getattr(args, "preset", None)
    file = read_settings(Path(config)) if config else {}
    if file.get("mode", mode) != mode:
        raise SettingsError(f"config: the file is for mode {file['mode']}, not for {mode}")
    base = with_defaults({**file, "mode": mode, "preset": preset or file.get("preset")})
    tasks: list[str | OwnTask] = [*(args.tasks or ()), *table_of(args)]
    if not tasks and "tasks" in file:
        tasks += tasks_by_name(file["tasks"])
    elif not tasks:
        tasks += default_tasks(mode, {**as_mapping(base.get("objective")), **flat})
    names = [one if isinstance(one, str) else one.name for one in tasks]
    if mode in ("single", "probe") and len(names) != 1:
        line = f"--mode {mode} needs one task, for example --task sst, or one column in --labels"
        parser.error(f"{line}; found {', '.join(names) or 'none'}")
    given = merged(file, {"tasks": tasks, "mode": mode})
    given = merged(given, nested(flat, names, base))
    if "init" in flat and "encoder" not in flat:
        given["encoder"] = Run(flat["init"]).config.encoder
    return RunConfig(**given)


def main(args: argparse.Namespace, parser: Parser) -> int:
    """Train a run for each seed and print its metrics, and their mean if there are several."""
    config, folders = config_of(args, parser), []
    for seed in range(config.seed, config.seed + args.seeds):
        one = replace(config, seed=seed)
        folder = Path(args.output) if args.output else default_folder(one)
        folder = folder / f"seed-{seed}" if args.output and args.seeds > 1 else folder
        train_one(one, folder, args)
        folders.append(folder)
    words = next_words(config, str(folders[0]), getattr(args, "table", None) or ())
    words += ["--use", *args.use] if args.use else []
    if len(folders) > 1 and not config.pretrains:
        from reports.comparison import compare
        from reports.comparison_tables import as_text
        from reports.systems import group_runs

        systems = group_runs([(None, Run(one)) for one in folders])
        print(as_text(compare(systems)), end="\n\n")
        words = ["--mode", "ensemble", "--runs", *map(str, folders)]
    print(f"next: {shlex.join([*program(), *words])}")
    return 0


def train_one(config: RunConfig, folder: Path, args: argparse.Namespace) -> None:
    """Train a run in its folder and print its metrics; a finished run is only printed."""
    control = {one: getattr(args, one) for one in ("resume", "overwrite", "checkpoint_every")}
    if args.resume and not folder.exists():
        print(f"--resume: no run in {folder}; training starts from the beginning", flush=True)
    try:
        from multitask.run import train
        from reports.run_tables import summary

        run = train(config, folder, **control)
    except KeyboardInterrupt as interrupt:
        line = "--resume continues from the last checkpoint, if there is one"
        raise KeyboardInterrupt(line) from interrupt
    print(f"\n{summary(run.metrics, run)}\n\npredictions, metrics.json and checkpoint: {folder}\n")


def next_words(config: RunConfig, folder: str, table: Sequence[str]) -> list[str]:
    """Return the flags of a command that uses a run, with the texts that the user trained on."""
    own = next(iter(config.own_tasks.values()), None)
    if config.pretrains and (file := getattr(config.objective, "data_file", None)) is not None:
        columns = getattr(config.objective, "text", ())[:1]
        texts = ["--input", file, *(["--text", *columns] if columns else [])]
        return ["--mode", "encode", "--run", folder, *texts, "--output", f"{folder}.npy"]
    if config.pretrains:
        return ["--mode", "probe", "--task", "sst", "--init", folder]
    texts = []
    if own is not None:
        texts = ["--input", own.files.get("test") or own.files["dev"], "--text", *own.text]
        texts += ["--table", *table] if table else []
    return ["--mode", "predict", "--run", folder, *texts]
