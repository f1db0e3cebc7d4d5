"""Runs on disk: reading them, and writing the merge of several runs as a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from common.errors import RunError, UserError
from common.files import is_run, write_json
from common.settings import as_json, default_of, methods
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig
from multitask.settings.methods import ROLES
from tasks.base import Task, TaskOptions
from tasks.metrics import mean_score
from tasks.own_task import OwnTask, complete_task, own_tasks_of, tasks_by_name
from tasks.predictions import Scores, read_scores_of, write_prediction_file, write_scores

# Settings that the table shows in separate columns, or that do not affect the result.
SHOWN = ("mode", "tasks", "seed", "data", "device", "output", "members", "method")


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, its configuration as JSON, and its metrics if it is finished."""

    folder: Path
    config: Mapping[str, Any]
    metrics: Mapping[str, Any] | None

    @property
    def tasks(self) -> dict[str, Any]:
        """The tasks of the run by name, with their keys."""
        return tasks_by_name(self.config["tasks"])

    @property
    def own_tasks(self) -> dict[str, OwnTask]:
        """The tasks on the user's own files, by name."""
        return own_tasks_of(self.config["tasks"])

    @property
    def main_tasks(self) -> tuple[str, ...]:
        """The tasks that are not auxiliary, which have predictions."""
        auxiliary = self.config.get("auxiliary", ())
        return tuple(name for name in self.tasks if name not in auxiliary)

    def described(self, name: str) -> TaskOptions:
        """Return a task of the run with its options."""
        return complete_task(self.tasks[name])

    def task(self, name: str) -> Task:
        """Return a task of the run, to read its data and its predictions."""
        return self.described(name).build()

    def scores(self, task: str, split: str) -> Scores:
        """Read the probabilities or similarities of a task on a split."""
        return read_scores_of(RunFolder(self.folder).scores(task, split), self.task(task).kind)

    @property
    def main_scores(self) -> dict[tuple[str, str], float]:
        """The main dev metric, the first one, by task (or objective) and name of the metric."""
        dev = (self.metrics or {}).get("dev", {})
        first = {task: next(iter(dev[task])) for task in dev if isinstance(dev[task], Mapping)}
        return {(task, metric): dev[task][metric] for task, metric in first.items()}

    @property
    def score(self) -> float | None:
        """The `mean_score` of the tasks' main dev metrics, whatever the run's own `select_by`.

        Auxiliary tasks do not count. None without any metric.
        """
        auxiliary = self.config.get("auxiliary", ())
        found = {one: v for one, v in self.main_scores.items() if one[0] not in auxiliary}
        values = {task: value for (task, _), value in found.items()}
        return mean_score(values, dict(found.keys())) if values else None

    @property
    def state(self) -> str:
        """Progress: finished; finished, part of dev (used for its metrics); unfinished."""
        members = (self.metrics or {}).get("members", {}).values()
        part = ", part of dev" if any(one["selected_on_examples"] for one in members) else ""
        return "unfinished" if self.metrics is None else f"finished{part}"

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
        if key in SHOWN or (key in plain and value == plain[key]):
            continue
        if key not in ROLES or not value:
            found[key] = value
            continue
        for one in value if key == "regularizers" else [value]:
            name, cls = one["name"], methods(ROLES[key]).get(one["name"])
            usual = {} if cls is None else {f.name: as_json(default_of(f)) for f in fields(cls)}
            if key != "regularizers" and name != (plain[key] or {}).get("name"):
                found[key] = name
            set_ones = {k: v for k, v in one.items() if k != "name" and v != usual.get(k)}
            found |= {f"{name} {k}": v for k, v in set_ones.items()}
    return found


def find_runs(root: Path) -> tuple[list[StoredRun], list[str]]:
    """Return all runs under a folder, sorted by path, and the errors of unreadable ones."""
    found, problems = [], []
    for file in sorted(root.rglob("config.json")):
        if any(one.startswith(".") for one in file.relative_to(root).parts):
            continue
        try:
            if is_run(RunFolder(file.parent).read("config.json")):
                found.append(read_run(file.parent))
        except UserError as error:
            problems.append(str(error))
    return found, problems


def read_run(folder: Path) -> StoredRun:
    """Read the run in a folder; raise RunError if there is none."""
    run = RunFolder(folder)
    if not is_run(config := run.read("config.json")):
        raise RunError(f"{folder}: expected a run with a config.json, found none")
    return StoredRun(folder, config, run.metrics())


def check_same_rows(runs: Iterable[StoredRun], task: str, split: str) -> None:
    """Raise RunError if an own task has ids of other columns, or row numbers of other files.

    Equal ids would then be those of different examples.
    """
    found: dict[str | None, Path] = {}
    for run in runs:
        if own := run.own_tasks.get(task):
            by_column = f"the column {own.id}" if own.id else None
            file = RunFolder(run.folder).read("data.json").get(f"{task} {split}")
            found.setdefault(by_column or file, run.folder)
    if len(found) > 1:
        first, other, *_ = found.values()
        line = f"expected the {split} file of {task} of {first}, with ids from the same column"
        raise RunError(f"{other}: {line}, found another; describe the task with id=COLUMN")


@contextmanager
def merged_run(
    folder: Path, config: Mapping[str, Any], members: Iterable[Path], overwrite: bool
) -> Iterator[None]:
    """Hold the folder of a run that is merged from others, or fitted to one of them.

    Raise UserError if the folder is a member's or holds another run, and RunError if it cannot be
    written or another process uses it.
    """
    if folder.resolve() in {one.resolve() for one in members}:
        raise UserError(f"{folder}: expected another --output than a member's folder")
    with RunFolder(folder).locked():
        stored = RunFolder(folder).read("config.json")
        if stored and stored != config and not overwrite:
            line = f"expected this {config['mode']} or nothing, found another run"
            raise UserError(f"{folder}: {line}; choose another --output, or add --overwrite")
        yield


def write_merged_run(
    run: StoredRun, tables: Mapping[str, Mapping[str, Scores]], data: Mapping[str, str]
) -> None:
    """Write a run with its scores by task and split, in place of one that is there.

    `data` are the checksums of the files with the scored examples, by name.
    """
    folder = RunFolder(run.folder)
    folder.begin(run.config, data, overwrite=True)
    for task, splits in tables.items():
        output = run.task(task).output
        for split, table in splits.items():
            assert table.predictions is not None
            if output is not None:
                file = folder.predictions / output.name(split)
                write_prediction_file(file, output, table.ids, table.predictions)
            write_scores(folder.scores(task, split), table)
    write_json(folder.metrics_file, run.metrics or {})
