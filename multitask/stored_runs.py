"""Runs on disk: reading them, and writing the merge of several runs as a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from common.errors import RunError, UserError
from common.files import is_run, write_json
from common.settings import as_json, default_of, methods
from multitask.run_folder import CHECKPOINT, RunFolder, stored_run_errors
from multitask.settings.config import RunConfig
from multitask.settings.methods import ROLES
from tasks import TASKS, OwnTasks, find_task
from tasks.base import Task
from tasks.metrics import mean_score
from tasks.own_types import TYPES
from tasks.predictions import (
    Scores,
    write_prediction_file,
    write_scores,
)
from tasks.task_description import NAME

# Settings that the table shows in separate columns, or that do not affect the result.
SHOWN = ("mode", "tasks", "own_tasks", "seed", "data", "device", "output", "members", "method")


TaskName = Annotated[str, msgspec.Meta(pattern=f"^{NAME.pattern}$")]  # a part of files' names


class Settings(TypedDict, total=False):
    """The settings of a run or of a merge of runs that readers use."""

    mode: str
    tasks: list[TaskName]
    auxiliary: list[TaskName]
    own_tasks: dict[TaskName, dict[str, Any]]
    task_options: dict[TaskName, dict[str, Any]]
    members: dict[TaskName, list[str]]
    seed: int
    data: str | None
    init: str | None


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, its configuration as JSON, and its metrics if it is finished."""

    folder: Path
    config: Mapping[str, Any]
    metrics: Mapping[str, Any] | None

    @property
    def own_tasks(self) -> OwnTasks:
        """Descriptions of tasks that are not built in, by name."""
        return self.config.get("own_tasks", {})

    @property
    def main_tasks(self) -> tuple[str, ...]:
        """The tasks that are not auxiliary, which have predictions."""
        auxiliary = self.config.get("auxiliary", ())
        return tuple(name for name in self.config["tasks"] if name not in auxiliary)

    def task(self, name: str) -> Task:
        """Return the task of this name with the description and the outputs of the run."""
        with stored_run_errors(self.folder):
            return find_task(name, self.own_tasks, **self.output_options(name))

    def output_options(self, task: str) -> dict[str, str]:
        """Return the options of a task that decide the number of its outputs, if they are set."""
        stored = self.config.get("task_options", {}).get(task, {})
        return {key: stored[key] for key in ("classes", "types") if stored.get(key)}

    def main_metric(self, task: str) -> str:
        """Return the main metric of a task."""
        if task not in TASKS and task not in self.own_tasks:  # of a user's own class
            found = (self.metrics or {}).get("dev", {}).get(task) or {}
            known = {one.main_metric for one in TYPES.values()}
            return next((name for name in found if name in known), "accuracy")
        if own := self.own_tasks.get(task):
            return TYPES[own["type"]].main_metric
        return TASKS[task].main_metric

    @property
    def score(self) -> float | None:
        """The `mean_score` of the tasks' main dev metrics, whatever the run's own `select_by`.

        Auxiliary tasks do not count. None without any metric.
        """
        dev, auxiliary = (self.metrics or {}).get("dev", {}), self.config.get("auxiliary", ())
        names = {  # of pre-training, the objective's
            task: self.main_metric(task)
            for task, found in dev.items()
            if isinstance(found, Mapping) and task not in auxiliary
        }
        values = {task: dev[task][m] for task, m in names.items() if m in dev[task]}
        return mean_score(values, {task: names[task] for task in values}) if values else None

    @property
    def state(self) -> str:
        """Progress: finished; finished, part of dev (used for its metrics); unfinished."""
        if self.metrics is not None:
            members = self.metrics.get("members", {}).values()
            some = any(one.get("selected_on_examples") for one in members)
            return "finished, part of dev" if some else "finished"
        return "unfinished"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings other than defaults and those in `SHOWN`, and how runs were merged."""
        merged = {}
        if members := self.config.get("members"):
            names = list(dict.fromkeys(Path(one).name for runs in members.values() for one in runs))
            merged = {"method": self.config.get("method"), "members": names}
        return merged | other_than_defaults(self.config)


def other_than_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run as JSON that are no defaults; those of methods by both names."""
    plain = RunConfig().to_json() | {"precision": "fp32"}  # of a run it is never `auto`
    found: dict[str, Any] = {}
    for key, value in config.items():
        several = value if key == "regularizers" else [value]
        if key in SHOWN or (key in plain and value == plain[key]):
            continue
        if key not in ROLES or not all(isinstance(one, Mapping) for one in several):
            found[key] = value
            continue
        for one in several:
            cls = methods(ROLES[key]).get(one["name"])
            usual = {} if cls is None else {f.name: as_json(default_of(f)) for f in fields(cls)}
            if key != "regularizers" and one["name"] != (plain[key] or {}).get("name"):
                found[key] = one["name"]
            found |= {
                f"{one['name']} {name}": setting
                for name, setting in one.items()
                if name != "name" and setting != usual.get(name)
            }
    return found


def find_runs(root: Path) -> tuple[list[StoredRun], list[str]]:
    """Return all runs under a folder, sorted by path, and the errors of unreadable ones."""
    found, problems = [], []
    for file in sorted(root.rglob("config.json")):
        parts = file.relative_to(root).parts
        if CHECKPOINT.fullmatch(file.parent.name) or any(one.startswith(".") for one in parts):
            continue
        try:
            if is_run(RunFolder(file.parent).settings_if_any() or {}):
                found.append(read_run(file.parent))
        except UserError as error:
            problems.append(str(error))
    return found, problems


def read_run(folder: Path) -> StoredRun:
    """Read the run in a folder; raise RunError if there is none."""
    place = RunFolder(folder)
    config = place.settings_if_any() or {}
    if not is_run(config):
        raise RunError(f"{folder}: expected a run with a config.json, found none")
    try:
        msgspec.convert(config, Settings)
    except msgspec.ValidationError as error:
        raise RunError(f"{place.config_file}: {error}; train the run again") from error
    return StoredRun(folder, config, place.read_metrics())


def check_same_rows(runs: Iterable[Path], task: str, split: str) -> None:
    """Raise RunError if the ids of an own task are of different columns, or numbers of other rows.

    Equal ids would then be those of different examples: ids beside row numbers, or row numbers of
    files that differ. Folders without a run are not compared, those without checksums only by the
    column of ids.
    """
    first: tuple[Path, str] | None = None
    column: tuple[Path, str | None] | None = None
    for run in runs:
        own = read_run(run).own_tasks.get(task) if RunFolder(run).config_file.exists() else None
        if own is None:
            continue
        column = column or (run, own.get("id"))
        if own.get("id") != column[1]:
            mine, theirs = (f"id={one}" if one else "no id" for one in (own.get("id"), column[1]))
            raise RunError(f"{run}: expected {task} with {theirs}, as {column[0]}, found {mine}")
        checksum = RunFolder(run).data().get(f"{task} {split}")
        if own.get("id") is not None or checksum is None:
            continue
        first = first or (run, checksum)
        if checksum != first[1]:
            raise RunError(
                f"{run}: expected the {split} file of {task} of {first[0]}, because its examples "
                "have row numbers in place of ids, found another file; describe the task with id="
            )


def scored_files(runs: Iterable[Path]) -> dict[str, str]:
    """Return the checksums of the files of dev and test that runs read, those of the first one."""
    found: dict[str, str] = {}
    for run in runs:
        for name, checksum in RunFolder(run).data().items():
            if name.endswith((" dev", " test")):
                found.setdefault(name, checksum)
    return found


def check_merged_folder(
    folder: Path, config: Mapping[str, Any], members: Iterable[Path], overwrite: bool
) -> None:
    """Raise UserError if the folder is a member's or holds a run not to be replaced.

    Raise RunError if it cannot be written, or another process uses it.
    """
    for member in members:
        if folder.resolve() == member.resolve():
            raise UserError(f"{folder}: expected another --output than a member's folder")
    stored = RunFolder(folder).run_or_nothing()
    if stored is not None and stored != config and not overwrite:
        raise UserError(
            f"{folder}: expected this {config['mode']} or nothing, found another run; choose "
            "another --output, or add --overwrite"
        )
    with RunFolder(folder).locked():
        return  # it can be written, and no other process does


def write_merged_run(
    folder: Path,
    config: Mapping[str, Any],
    metrics: Mapping[str, Any],
    tables: Mapping[str, Mapping[str, Scores]],
    data: Mapping[str, str],
) -> None:
    """Write scores by task and split, and metrics. A run there is removed first.

    `data` are the checksums of the files with the scored examples, by name.
    """
    run = RunFolder(folder)
    with run.locked():
        run.begin(config, data, overwrite=True)
        for task, splits in tables.items():
            output = StoredRun(folder, config, None).task(task).output
            for split, table in splits.items():
                assert table.predictions is not None
                if output is not None:
                    file = run.predictions / output.name(split)
                    write_prediction_file(file, output, table.ids, table.predictions)
                write_scores(run.scores(task, split), table)
        write_json(run.metrics_file, metrics)
