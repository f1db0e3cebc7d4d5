"""Runs: a folder with what it holds, and what several runs have in common."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from common.errors import Notice, RunError, UserError
from common.files import read_json_if_any
from common.settings import as_json, default_of, methods
from minbert.checksums import EXPORTED, STATE, is_run, read_state
from multitask.settings.config import RunConfig
from multitask.settings.methods import ROLES
from tasks.base import TaskOptions
from tasks.metrics import mean_score
from tasks.own_tasks import complete_task, tasks_by_name
from tasks.predictions import Scores, read_scores, scores_name

CALIBRATION = "calibration.json"  # in an exported folder, too
# Settings that tables show in separate columns, or that do not affect the result.
SHOWN = ("mode", "tasks", "seed", "data", "device", "output", "members", "method")


class Run:
    """A run in a folder, or an exported one: `folder`, `config`, `metrics`, and its `model`.

    Everything is read when it is first asked for. `best/` has the weights of the best epoch, and
    `last/`, until the run is finished, what resuming needs.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser()

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of a JSON file, empty without one; RunError if it is damaged."""
        return read_json_if_any(self.folder / name, RunError)

    @property
    def exported(self) -> bool:
        return (self.folder / EXPORTED).exists()

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings as JSON, also of an ensemble; RunError if there is no run."""
        found = self.read(EXPORTED if self.exported else "config.json")
        if not is_run(found):
            raise RunError(f"{self.folder}: there is no run in this folder")
        return found

    @cached_property
    def config(self) -> RunConfig:
        """The configuration; RunError for an ensemble."""
        if self.settings["mode"] == "ensemble":
            raise RunError(f"{self.folder}: an ensemble has no encoder; use one of its members")
        try:
            return RunConfig(**self.settings)
        except UserError as error:
            file = self.folder / (EXPORTED if self.exported else "config.json")
            raise RunError(f"{file}: {error}") from error

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """The content of `metrics.json`; empty if the run is not finished."""
        return self.read("metrics.json") if self.settings else {}

    @cached_property
    def model(self) -> Any:
        """A `serving.MultiTaskModel`, or a `BiEncoder` after pre-training. Both have `encode`."""
        if self.config.pretrains:
            open_bi_encoder = import_module("multitask.assembly").open_bi_encoder
            return open_bi_encoder(self.weights(), self.config)
        # Packages that depend on this one are imported only when they are needed.
        return import_module("serving").load(self.folder)

    # Tasks and scores

    @property
    def tasks(self) -> dict[str, Any]:
        """The tasks of the run by name, with their keys; those on a user's files have `train`."""
        return tasks_by_name(self.settings["tasks"])

    def described(self, name: str) -> TaskOptions:
        """Return a task of the run with its options."""
        return complete_task(self.tasks[name])

    def scores_file(self, task: str, split: str) -> Path:
        """Return the file with a task's probabilities or similarities on a split."""
        return self.folder / "predictions" / scores_name(task, split)

    def scores(self, task: str, split: str) -> Scores:
        """Read the probabilities or similarities of a task on a split."""
        return read_scores(self.scores_file(task, split), self.described(task).build().kind)

    @property
    def main_scores(self) -> dict[tuple[str, str], float]:
        """The main dev metric, the first one, by task (or objective) and name of the metric."""
        dev = self.metrics.get("dev", {})
        first = {task: next(iter(dev[task])) for task in dev if isinstance(dev[task], Mapping)}
        return {(task, metric): dev[task][metric] for task, metric in first.items()}

    @property
    def score(self) -> float | None:
        """The `mean_score` of the tasks' main dev metrics; None without any metric."""
        found = self.main_scores
        values = {task: value for (task, _), value in found.items()}
        return mean_score(values, dict(found.keys())) if values else None

    def checkpoint(self, kind: str) -> Path | None:
        """Return the checkpoint `best` or `last`; None without a complete one."""
        return self.folder / kind if (self.folder / kind / STATE).exists() else None

    def weights(self) -> Path:
        """Return the folder with the weights of the best epoch, or of an export.

        Raise RunError if there are none, or if they are damaged.
        """
        best = self.folder if self.exported else self.checkpoint("best")
        if best is None:
            _ = self.settings  # raises RunError if there is no run at all
            raise RunError(f"{self.folder}: the run has no weights (no folder best)")
        read_state(best, RunError)
        return best

    def warn_if_unfinished(self) -> None:
        """Warn the caller's caller if the run has not finished; an export is never unfinished."""
        if not self.exported and not self.metrics:
            line = "this run has not finished: its best epoch so far is used; --resume continues it"
            warnings.warn(f"{self.folder}: {line}", Notice, stacklevel=3)


def default_folder(config: RunConfig) -> Path:
    """Return `runs/<mode, tasks or method, encoder, seed>-<hash>` for a configuration."""
    method = [config.sampling.name, config.combiner.name]
    parts = [config.mode, *(method if config.mode == "multitask" else [*config.tasks][:5])]
    parts += [] if config.objective is None else [config.objective.name]
    parts += [Path(config.encoder).name, f"seed{config.seed}", config.digest()]
    return Path("runs") / "-".join(parts)


def in_words(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by words: `combiner` (its name), `combiner preference`, `limit sst`.

    Those of a regulariser follow its name: `smart weight`.
    """
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if key == "regularizers":
            for one in value:
                found |= {f"{one['name']} {k}": v for k, v in one.items() if k != "name"}
        elif isinstance(value, Mapping):
            found |= {key if k == "name" else f"{key} {k}": v for k, v in value.items()}
        else:
            found[key] = value
    return found


def other_than_defaults(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings `in_words` that are no defaults, of the run or of its methods.

    Without those in `SHOWN`; a merged run has the names of its members.
    """
    words, usual = in_words(config), in_words(RunConfig().to_json())
    chosen = {role: methods(base).get(words.get(role, "")) for role, base in ROLES.items()}
    for first, cls in {**chosen, **methods(ROLES["regularizers"])}.items():
        if cls is not None:
            usual |= {f"{first} {one.name}": as_json(default_of(one)) for one in fields(cls)}
    found: dict[str, Any] = {}
    if members := config.get("members"):
        names = list(dict.fromkeys(Path(one).name for runs in members.values() for one in runs))
        found = {"method": config.get("method"), "members": names}
    for key, value in words.items():
        hidden = key.split()[0] in SHOWN or (key, value) == ("precision", "fp32")
        if not hidden and value is not None and value != usual.get(key):
            found[key] = value
    return found


def check_same_rows(runs: Iterable[Run], task: str, split: str) -> None:
    """Raise RunError if an own task has ids of other columns, or row numbers of other files.

    Equal ids would then be those of different examples.
    """
    found: dict[str | None, Path] = {}
    for run in runs:
        own = run.tasks.get(task, {})
        if "train" in own:
            by_column = f"the column {own['id']}" if own.get("id") else None
            found.setdefault(by_column or run.read("data.json").get(f"{task} {split}"), run.folder)
    if len(found) > 1:
        first, other, *_ = found.values()
        line = f"its {split} file of {task} is not the one of {first}, or has other ids"
        raise RunError(f"{other}: {line}; describe the task with id=COLUMN in both runs")
