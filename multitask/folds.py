"""Cross-validation: a run per fold of the files of own tasks. No torch is imported here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from common.errors import SettingsError
from common.folder_content import folder_of_runs
from common.json_files import write_json
from common.processes import several_processes
from common.settings import convert
from multitask.control import RunControl
from multitask.precision import of_first_run
from multitask.settings.config import RunConfig
from multitask.settings.methods import is_default
from tasks.shared_splits import shared_label_columns
from tasks.task_description import Folds, TaskDescription, from_json

FOLDS_FILE = "folds.json"


def fold_config(config: RunConfig, fold: int, folds: int) -> RunConfig:
    """Return a configuration with fold number `fold`, from 1, as test, and the next one as dev.

    Raise SettingsError for tasks whose files cannot be split into folds.
    """
    if not is_default("protocol", config.protocol):
        raise SettingsError(
            f"folds and protocol {config.protocol.name}: expected one of them, because both split"
        )
    described = {}
    for name in config.tasks:
        if name not in config.own_tasks:
            line = "expected only own tasks, each of a single file that is split"
            raise SettingsError(f"folds: {line}, found the built-in {name}")
        one = described[name] = from_json(name, config.own_tasks[name])
        check_single_file(one)
    tables = shared_label_columns(described)
    own = {
        name: replace(one, table=tables[name], fold=fold, folds=folds).to_json()
        for name, one in described.items()
    }
    return config.changed(tasks=config.tasks, own_tasks=own)


def check_single_file(described: TaskDescription) -> None:
    """Raise SettingsError for a task with files for dev or test."""
    for split in ("dev", "test"):
        if file := getattr(described, split):
            line = f"expected own tasks of a single file, found {described.name} with {file}"
            raise SettingsError(f"folds: {line} for {split}")


def cross_validate(
    config: RunConfig, folder: str | Path, folds: int, control: RunControl = RunControl()
) -> dict[str, Any]:
    """Complete a run per fold in `fold-1`, `fold-2` ... of a folder; return what folds.json holds.

    Finished folds are left alone and unfinished ones continued, unless `control.overwrite` is set.
    The file has the test metrics of all folds, their mean and their sample standard deviation.
    Raise SettingsError for a configuration that `fold_config` refuses, and RunError for a folder
    with other content.
    """
    from multitask.run import complete

    if several_processes():
        raise SettingsError("folds: expected one process, found several (torchrun)")
    folds = convert("folds", Folds, folds)
    configs = [fold_config(config, fold, folds) for fold in range(1, folds + 1)]
    for key in ("init", "teacher"):
        if getattr(config, key):
            line = "test scores are too high if that run learnt from rows of this file"
            print(f"{key}: {line}", flush=True)
    folder = Path(folder).expanduser()
    with folder_of_runs(folder, "folds", (FOLDS_FILE,), ("fold-",)):
        if control.overwrite:
            (folder / FOLDS_FILE).unlink(missing_ok=True)
        control = replace(control, resume=not control.overwrite)
        first = of_first_run(folder / "fold-1", configs[0], control.overwrite)
        results = []
        for fold, one in enumerate(configs, 1):
            print(f"fold {fold} of {folds} is test, fold {fold % folds + 1} dev", flush=True)
            one = one.changed(precision=first.precision)
            results.append(complete(one, folder / f"fold-{fold}", control)["test"])
        found = {"folds": folds, "tasks": list(config.tasks), "test": mean_metrics(results)}
        write_json(folder / FOLDS_FILE, found)
        return found


def mean_metrics(
    results: Sequence[Mapping[str, Mapping[str, Any]]],
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return mean, sample standard deviation and values of each metric of each task."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for task, metrics in results[0].items():
        for name in metrics:
            values = [one[task].get(name) for one in results]
            numbers = [value for value in values if isinstance(value, float | int)]
            if len(numbers) == len(values):
                measured = {"mean": fmean(numbers), "std": stdev(numbers), "values": numbers}
                found.setdefault(task, {})[name] = measured
    return found
