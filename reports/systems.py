"""Systems: the runs of one method, over tasks and seeds."""

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

# Settings in which the runs of one system may differ. Single-task runs of several tasks and seeds
# form a system, as do multi-task runs of several seeds.
VARYING = ("tasks", "seed", "init", "members", "device")
NO_SEED = -1  # for merged runs whose members were not selected by a seed


@dataclass(frozen=True)
class System:
    """Runs of one training method; `cells` are the runs by task and seed."""

    name: str
    runs: tuple[Run, ...]
    cells: Mapping[tuple[str, int], Run]

    @property
    def tasks(self) -> tuple[str, ...]:
        return in_order(task for task, _ in self.cells)


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
        mode = run.settings["mode"]
        if not run.settings["tasks"]:
            raise UserError(f"{run.folder}: expected a run of tasks, found one of mode {mode}")
        own = [one for one in distinguishing_settings(run) if one not in common]
        title = name or ", ".join([mode, *own])
        others = found.setdefault(title, [])
        if name is None:
            check_alike(title, others, run)
        others.append(run)
    return [make_system(name, tuple(several)) for name, several in found.items()]


def distinguishing_settings(run: Run) -> list[str]:
    """Return the settings that define a system, with `pre-trained` instead of a folder."""
    found = ["pre-trained"] if run.settings.get("init") else []
    for key, value in other_than_defaults(run.settings).items():
        if isinstance(value, dict) and key.endswith(" weight"):
            found.append(f"{key} {' '.join(sorted({f'{one:g}' for one in value.values()}))}")
        elif key not in VARYING:
            found.append(f"{key} {shown(value)}")
    return found


def check_alike(name: str, others: Sequence[Run], run: Run) -> None:
    """Raise UserError if a run has other data, options or start than others of its system."""
    for other in others:
        for task in sorted(set(run.tasks) & set(other.tasks)):
            mine, theirs = (data_and_start(one, task) for one in (run, other))
            for what in (one for one in mine if one in theirs):
                if mine[what] != theirs[what]:
                    raise UserError(
                        f"{run.folder}: expected, as a run of the system {name}, {what} "
                        f"{theirs[what]!r}, which {other.folder} has, found {mine[what]!r}; "
                        "NAME=RUN distinguishes systems"
                    )


def data_and_start(run: Run, task: str) -> dict[str, Any]:
    """Return what runs of a system must share, as far as it is known.

    That are data and their checksums, a task's options, and the run from which they start.
    Multi-task runs also share all their tasks.
    """
    options = {k: v for k, v in run.tasks[task].items() if k not in ("name", "test_labels")}
    found = {"data": run.settings.get("data"), f"options of {task}": options}
    if run.settings["mode"] == "multitask":
        found["tasks"] = sorted(run.tasks)
    stored = run.read("data.json")  # dev is compared by its ids or checksum
    found |= {f"checksum of {k}": stored[k] for k in (f"{task} train", ENCODER) if k in stored}
    start = run.settings.get("init")
    if start is None:
        found["start"] = None
    elif (Path(start) / "config.json").exists():
        before = Run(start)
        found["start"] = [before.settings["mode"], [*before.tasks], distinguishing_settings(before)]
    return found


def make_system(name: str, runs: tuple[Run, ...]) -> System:
    cells: dict[tuple[str, int], Run] = {}
    for run in runs:
        for task in run.tasks:
            cell = task, seed_of(run)
            if cell in cells:
                raise UserError(
                    f"{run.folder}: expected one run of {task} with seed {cell[1]} in the system "
                    f"{name}, found {cells[cell].folder} too; NAME=RUN distinguishes systems"
                )
            cells[cell] = run
    return System(name, runs, cells)


def seed_of(run: Run) -> int:
    """Return the seed of a run, or `NO_SEED` for a merge without random selection."""
    if run.settings.get("members") and run.settings.get("method") != "greedy":
        return NO_SEED
    return int(run.settings.get("seed", 0))
