"""Systems: runs of one training method, over tasks and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import UserError
from multitask.run_folder import ENCODER
from multitask.runs import Run, other_than_defaults
from reports.tables import shown
from tasks import in_order
from tasks.base import Task

# Settings in which the runs of one system may differ. Single-task runs of several tasks and seeds
# form a system, as do multi-task runs of several seeds.
VARYING = ("tasks", "seed", "init", "members", "device")
NO_SEED = -1  # for merged runs whose members were not selected by a seed
UNKNOWN = "nothing that can be found"


@dataclass(frozen=True)
class System:
    """Runs of one training method; `cells` are their folders by task and seed."""

    name: str
    runs: tuple[Run, ...]
    cells: Mapping[tuple[str, int], Path]

    @property
    def tasks(self) -> tuple[str, ...]:
        return in_order(task for task, _ in self.cells)

    def task(self, name: str) -> Task:
        """Return the task as its runs define it."""
        return next(run for run in self.runs if name in run.tasks).task(name)

    def seeds(self, task: str) -> list[int]:
        return sorted(seed for name, seed in self.cells if name == task)


def group_runs(runs: Sequence[tuple[str | None, Run]]) -> list[System]:
    """Group runs, each with the name of its system or None, into systems in their order.

    Runs without a name form a system if they differ only in the settings `VARYING`. Raises
    UserError for an unfinished run, or for two runs of the same task and seed.
    """
    found: dict[str, list[Run]] = {}
    every = [set(distinguishing_settings(run)) for _, run in runs]
    common = set.intersection(*every) if len(every) > 1 else set()
    for name, run in runs:
        if not run.metrics:
            raise UserError(f"{run.folder}: expected a finished run, found {run.state}")
        if not run.settings["tasks"]:
            raise UserError(
                f"{run.folder}: expected a run of tasks, found one of mode {run.settings['mode']}"
            )
        own = [one for one in distinguishing_settings(run) if one not in common]
        title = name or ", ".join([run.settings["mode"], *own])
        if name is None:
            check_same_system(title, found.get(title, []), run)
        found.setdefault(title, []).append(run)
    return [make_system(name, tuple(several)) for name, several in found.items()]


def check_same_system(name: str, others: Sequence[Run], run: Run) -> None:
    """Raise UserError if a run has other data, options or start than others of its system."""
    for other in others:
        for task in sorted(set(run.tasks) & set(other.tasks)):
            mine, theirs = (comparable_values(one, task) for one in (run, other))
            for what in dict.fromkeys((*mine, *theirs)):
                found, expected = mine.get(what), theirs.get(what)
                if found != expected and UNKNOWN not in (found, expected):
                    raise UserError(
                        f"{run.folder}: expected, as a run of the system {name}, {what} "
                        f"{expected!r}, which {other.folder} has, found {found!r}; NAME=RUN "
                        "distinguishes systems"
                    )


def comparable_values(run: Run, task: str) -> dict[str, Any]:
    """Return what runs of a system must share: data and checksums, start, a task's description.

    Multi-task runs also share all their tasks.
    """
    described = dict(run.tasks.get(task, {}))
    described.pop("test_labels", None)  # it follows from the file of test
    files = {split: described.pop(split, None) for split in ("train", "dev", "test")}
    stored = run.read("data.json")
    several = run.settings["mode"] == "multitask"
    return {
        **({"tasks": sorted(run.tasks)} if several else {}),
        "data": run.settings.get("data"),
        f"files of {task}": files,
        **{
            f"checksum of {name}": stored.get(name, UNKNOWN)
            for name in (f"{task} train", ENCODER)  # dev is compared by its ids or checksum
        },
        **{f"{key} of {task}": value for key, value in described.items()},
        "start": start_of(run),
    }


def start_of(run: Run) -> Any:
    """Return a description of the run that a run starts from; None, or `UNKNOWN` if it is gone."""
    start = run.settings.get("init")
    if not start or not (Path(start) / "config.json").exists():
        return UNKNOWN if start else None
    before = Run(start)
    unusual = other_than_defaults(before.settings).items()
    return {
        "mode": before.settings["mode"],
        "tasks": [*before.tasks],
        "settings": {k: v for k, v in unusual if k not in ("init", "members")},
    }


def seed_of(run: Run) -> int:
    """Return the seed of a run, or `NO_SEED` for a merge without random selection."""
    if run.settings.get("members") and run.settings.get("method") != "greedy":
        return NO_SEED
    return int(run.settings.get("seed", 0))


def make_system(name: str, runs: tuple[Run, ...]) -> System:
    cells: dict[tuple[str, int], Path] = {}
    for run in runs:
        for task in run.tasks:
            cell = task, seed_of(run)
            if cell in cells:
                raise UserError(
                    f"{run.folder}: expected one run of {task} with seed {cell[1]} in the system "
                    f"{name}, found {cells[cell]} too; NAME=RUN distinguishes systems"
                )
            cells[cell] = run.folder
    return System(name, runs, cells)


def distinguishing_settings(run: Run) -> list[str]:
    """Return the settings that define a system, with `pre-trained` instead of a folder."""
    found = ["pre-trained"] if run.settings.get("init") else []
    for key, value in other_than_defaults(run.settings).items():
        if isinstance(value, dict) and key.endswith(" weight"):
            found.append(f"{key} {' '.join(sorted({f'{one:g}' for one in value.values()}))}")
        elif key not in VARYING:
            found.append(f"{key} {shown(value)}")
    return found
