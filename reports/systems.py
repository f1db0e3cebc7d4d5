"""Systems: runs of one training method, over tasks and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.progress import with_bar
from ensemble.alignment import aligned
from multitask.settings.methods import methods
from multitask.storage.data_files import ENCODER
from multitask.storage.run_folder import RunFolder
from multitask.storage.stored_runs import StoredRun, check_same_rows, read_run
from reports.tables import shown
from tasks import CS224N, in_order
from tasks.base import Task
from tasks.kinds import Kind
from tasks.metrics import overall
from tasks.predictions import Scores, read_scores_of

# Settings in which the runs of one system may differ. Single-task runs of several tasks and seeds
# form a system, as do multi-task runs of several seeds.
VARYING = ("tasks", "own_tasks", "task_options", "seed", "init", "members", "linear", "device")
NO_SEED = -1  # for merged runs whose members were not selected by a seed
UNKNOWN = "nothing that can be found"


@dataclass(frozen=True)
class System:
    """Runs of one training method; `cells` are their folders by task and seed."""

    name: str
    runs: tuple[StoredRun, ...]
    cells: Mapping[tuple[str, int], Path]

    @property
    def tasks(self) -> tuple[str, ...]:
        return in_order(task for task, _ in self.cells)

    def task(self, name: str) -> Task:
        """Return the task as its runs define it."""
        return next(run for run in self.runs if name in run.main_tasks).task(name)

    def seeds(self, task: str) -> list[int]:
        return sorted(seed for name, seed in self.cells if name == task)


def group_runs(runs: Sequence[tuple[str | None, StoredRun]]) -> list[System]:
    """Group runs, each with the name of its system or None, into systems in their order.

    Runs without a name form a system if they differ only in the settings `VARYING`. Raises
    UserError for an unfinished run, or for two runs of the same task and seed.
    """
    found: dict[str, list[StoredRun]] = {}
    every = [set(distinguishing_settings(run)) for _, run in runs]
    common = set.intersection(*every) if len(every) > 1 else set()
    weighed = differently_weighed([run for _, run in runs])
    for name, run in runs:
        if run.metrics is None:
            raise UserError(f"{run.folder}: expected a finished run, found {run.state}")
        if not run.config["tasks"]:
            raise UserError(
                f"{run.folder}: expected a run of tasks, found one of mode {run.config['mode']}"
            )
        own = [one for one in distinguishing_settings(run) if one not in common]
        own += [f"{task} {weights}" for task in weighed if (weights := class_weights(run, task))]
        title = name or ", ".join([run.config["mode"], *own])
        if name is None:
            check_same_system(title, found.get(title, []), run)
        found.setdefault(title, []).append(run)
    return [make_system(name, tuple(several)) for name, several in found.items()]


def differently_weighed(runs: Sequence[StoredRun]) -> tuple[str, ...]:
    """Return the own tasks whose classes have other weights in some runs than in others."""
    weights: dict[str, set[str]] = {}
    for run in runs:
        for task in run.own_tasks:
            weights.setdefault(task, set()).add(class_weights(run, task))
    return in_order(task for task, several in weights.items() if len(several) > 1)


def class_weights(run: StoredRun, task: str) -> str:
    """Return the class weights of an own task other than 1 as text; empty if it has none."""
    found = run.own_tasks.get(task, {}).get("class_weights") or {}
    return ", ".join(f"{label}={found[label]:g}" for label in sorted(found) if found[label] != 1)


def check_same_system(name: str, others: Sequence[StoredRun], run: StoredRun) -> None:
    """Raise UserError if a run has other data, options or start than others of its system."""
    for other in others:
        for task in sorted(set(run.main_tasks) & set(other.main_tasks)):
            mine, theirs = (comparable_values(one, task) for one in (run, other))
            for what in dict.fromkeys((*mine, *theirs)):
                found, expected = mine.get(what), theirs.get(what)
                if found != expected and UNKNOWN not in (found, expected):
                    raise UserError(
                        f"{run.folder}: expected, as a run of the system {name}, {what} "
                        f"{expected!r}, which {other.folder} has, found {found!r}; NAME=RUN "
                        "distinguishes systems"
                    )


def comparable_values(run: StoredRun, task: str) -> dict[str, Any]:
    """Return what runs of a system must share: data and checksums, start, a task's description.

    Multi-task runs also share all their tasks. Class weights are left out, because they define a
    system.
    """
    ignored = ("class_weights", "test_labels")  # the latter follows from the file of test
    described = {k: v for k, v in run.own_tasks.get(task, {}).items() if k not in ignored}
    files = {split: described.pop(split, None) for split in ("train", "dev", "test")}
    stored = RunFolder(run.folder).data_checksums()
    several = run.config["mode"] == "multitask"
    return {
        **({"tasks": sorted(run.config["tasks"])} if several else {}),
        "data": run.config.get("data"),
        f"files of {task}": files,
        **{
            f"checksum of {name}": stored.get(name, UNKNOWN)
            for name in (f"{task} train", ENCODER)  # dev is compared by its ids or checksum
        },
        f"options of {task}": run.config.get("task_options", {}).get(task, {}),
        **{f"{key} of {task}": value for key, value in described.items()},
        "start": start_of(run),
    }


def start_of(run: StoredRun) -> Any:
    """Return a description of the run that a run starts from; None, or `UNKNOWN` if it is gone."""
    start = run.config.get("init")
    if not start or not RunFolder(Path(start)).has_config():
        return UNKNOWN if start else None
    before = read_run(Path(start))
    return {
        "mode": before.config["mode"],
        "tasks": before.config["tasks"],
        "settings": {k: v for k, v in before.settings.items() if k not in ("init", "members")},
    }


def seed_of(run: StoredRun) -> int:
    """Return the seed of a run, or `NO_SEED` for a merge without random selection."""
    if run.config.get("members") and not str(run.config.get("method")).startswith("greedy"):
        return NO_SEED
    return int(run.config.get("seed", 0))


def make_system(name: str, runs: tuple[StoredRun, ...]) -> System:
    cells: dict[tuple[str, int], Path] = {}
    for run in runs:
        for task in run.main_tasks:
            cell = task, seed_of(run)
            if cell in cells:
                raise UserError(
                    f"{run.folder}: expected one run of {task} with seed {cell[1]} in the system "
                    f"{name}, found {cells[cell]} too; NAME=RUN distinguishes systems"
                )
            cells[cell] = run.folder
    return System(name, runs, cells)


def distinguishing_settings(run: StoredRun) -> list[str]:
    """Return the settings that define a system, with `pre-trained` instead of a folder."""
    found = ["pre-trained"] if run.config.get("init") else []
    weights = [f"{one.prefix}weight" for one in methods("regularizers").values()]
    for key, value in run.settings.items():
        if isinstance(value, dict) and key in weights:
            found.append(f"{key} {' '.join(sorted({f'{one:g}' for one in value.values()}))}")
        elif key not in VARYING:
            found.append(f"{key} {shown(value)}")
    return found


@dataclass(frozen=True)
class ScoredSystem:
    """Metrics of a system by task, seed and name, and its scores by task and seed.

    `left_out` is the number of dev examples of each task that neither includes.
    """

    system: System
    metrics: Mapping[str, Mapping[int, Mapping[str, float]]]
    scores: Mapping[tuple[str, int], Scores]
    left_out: Mapping[str, int]

    def seeds(self, task: str) -> list[int]:
        return self.system.seeds(task)

    def real_seeds(self, *tasks: str) -> list[int]:
        """Return the sorted seeds of the runs of these tasks, without `NO_SEED`."""
        return sorted({seed for task in tasks for seed in self.seeds(task)} - {NO_SEED})

    def dev_examples(self, task: str) -> int:
        """Return the number of dev examples of a task."""
        return len(self.scores[task, self.seeds(task)[0]].ids)

    def predictions(self, task: str, seed: int) -> np.ndarray:
        """Return the stored predictions, or those computed from the scores."""
        return self.scores[task, seed].predicted(self.system.task(task).kind.predictions)

    def values(self, task: str, metric: str) -> list[float]:
        """Return the metric of each seed."""
        return [found[metric] for found in self.metrics.get(task, {}).values()]

    def overall_values(self, name: str) -> list[float]:
        """Return the overall score of each seed that has all three tasks."""
        if not self.metrics.keys() >= set(CS224N):
            return []
        several = {task: self.metrics[task] for task in CS224N}
        common = set.intersection(*(set(found) for found in several.values()))
        every = [
            overall({t: found[seed] for t, found in several.items()}) for seed in sorted(common)
        ]
        return [found[name] for found in every if found]


def tasks_of(systems: Sequence[ScoredSystem]) -> tuple[str, ...]:
    """Return the tasks of all systems, in their usual order."""
    return in_order(task for one in systems for task in one.metrics)


def systems_with(systems: Iterable[ScoredSystem], task: str) -> list[ScoredSystem]:
    """Return the systems that have a task."""
    return [one for one in systems if task in one.metrics]


def first_task(systems: Iterable[ScoredSystem], name: str) -> Task:
    """Return the task of this name as the first system that has it defines it."""
    return systems_with(systems, name)[0].system.task(name)


def read_systems(folders: Iterable[tuple[str | None, Path]]) -> list[ScoredSystem]:
    """Read finished runs, each with the name of its system or None, and score their systems."""
    return score_systems(group_runs([(name, read_run(folder)) for name, folder in folders]))


def score_systems(systems: Sequence[System]) -> list[ScoredSystem]:
    """Read dev scores from the runs' folders and compute the metrics.

    Examples on which any of the systems was selected are left out for all systems.
    """
    cells = [(system, *cell) for system in systems for cell in system.cells.items()]
    for task in in_order(task for _, (task, _), _ in cells):
        check_same_rows([folder for _, (name, _), folder in cells if name == task], task, "dev")
    scores = {
        (task, seed, folder): read_scores_of(
            RunFolder(folder).scores(task, "dev"), system.task(task).kind
        )
        for system, (task, seed), folder in with_bar("read scores", "cell", cells)
    }
    seen: dict[str, set[str]] = {}
    for (task, _, _), found in scores.items():
        if found.selected_on is not None:
            seen.setdefault(task, set()).update(found.ids[found.selected_on].tolist())
    for (task, seed, folder), found in scores.items():
        if task in seen:
            rows = np.flatnonzero(~np.isin(found.ids, sorted(seen[task])))
            if not len(rows):
                line = "expected dev examples that selected no member of an ensemble, found none"
                raise UserError(f"{task}: {line}; compare fewer ensembles")
            scores[task, seed, folder] = found.rows(rows)
    left_out = {task: len(ids) for task, ids in seen.items()}
    # Those of the first system that has the task.
    kinds = {task: one.task(task).kind for one in reversed(systems) for task in one.tasks}
    return [
        score_system(
            system,
            {cell: scores[*cell, run] for cell, run in system.cells.items()},
            kinds,
            left_out,
        )
        for system in systems
    ]


def score_system(
    system: System,
    scores: Mapping[tuple[str, int], Scores],
    kinds: Mapping[str, Kind],
    left_out: Mapping[str, int],
) -> ScoredSystem:
    """Compute the metrics of a system by task and seed: by `kinds` where outputs are alike."""
    metrics: dict[str, dict[int, dict[str, float]]] = {}
    for task in system.tasks:
        kind, shared = system.task(task).kind, kinds[task]
        if (shared.classes, shared.labels) != (kind.classes, kind.labels):
            shared = kind  # the comparison of the two is refused
        # Raises an error unless all seeds have the same examples and labels.
        cells = {str(system.cells[task, s]): scores[task, s] for s in system.seeds(task)}
        aligned(cells, kind.predictions)
        for seed in system.seeds(task):
            found = scores[task, seed]
            if found.targets is None:
                raise UserError(f"{system.cells[task, seed]}: expected labels, found none")
            predictions = found.predicted(kind.predictions)
            metrics.setdefault(task, {})[seed] = shared.metrics(predictions, found.targets)
    return ScoredSystem(system, metrics, scores, left_out)
