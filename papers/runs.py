"""Training of what a paper's tables lack: every run has a folder, and its figures go into the CSV.

Several processes may work side by side: each takes the runs whose folders no other one holds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from common.errors import SettingsError, UserError, counted
from common.files import remove
from ensemble.runs import ensemble_runs
from minbert.device import environment
from multitask.config_tasks import plain_tasks
from multitask.run import train
from multitask.runs import Run
from multitask.settings.config import RunConfig
from papers.paper import Cell, Paper
from papers.store import OVERALL, Figure, Store
from reports.scores import majority_metrics
from tasks import data_folder
from tasks.metrics import overall

CONTROL: dict[str, Any] = {"resume": True, "tensorboard": False}
DATA = ("tasks", "protocol", "limit", "dev_limit", "test_limit", "drop_leaks")
OF_PROBE = (*DATA, "precision", "pooling")


@dataclass(frozen=True)
class Place:
    """Where runs read and write: the data, their folders, the stored figures, the device."""

    data: str
    runs: Path
    store: Store
    device: str = "auto"
    command: str = ""  # which repeats everything


def cells(paper: Paper, rows: Collection[str] | None, seeds: int | None) -> list[Cell]:
    """Return the runs of rows (default: all) and their tuning, the tuning first.

    `seeds` is the number of seeds of each row (default: all of its own).
    """
    wanted = [name for name in paper.rows if rows is None or name in rows]
    every = [point for name in wanted for point in paper.points(name)]
    every += [Cell(name, seed) for name in wanted for seed in paper.rows[name].seeds[:seeds]]
    return list(dict.fromkeys(every))


def run_cells(paper: Paper, every: Collection[Cell], place: Place) -> list[str]:
    """Run the cells that are not stored; return the errors, a line for each failed run.

    Cells that another process has begun come last: they are then stored, or it has stopped.
    """
    if place.store.command not in ("", place.command):
        line = f"{place.store.json} has rows of another command: {place.store.command}"
        raise SettingsError(f"{line}; choose another --results")
    done = [one for one in every if (one.name, one.seed) in place.store.runs]
    for one in done:
        paper.record(one, place.store)  # raises SettingsError if it was run with other settings
    left = [one for one in every if one not in done]
    print(f"runs that are done: {len(done)} of {len(every)}", flush=True)
    failed, busy = list[str](), list[Cell]()
    for wait, several in ((False, left), (True, busy)):
        for number, cell in enumerate(several):
            print(f"\n{cell.folder}: {counted(len(several) - number, 'run')} left", flush=True)
            try:
                if not run_cell(paper, cell, place, wait):
                    busy.append(cell)
            except UserError as error:
                failed.append(f"{cell.folder}: {error}")
                print(f"{failed[-1]}; the other runs continue", flush=True)
    return failed


def run_cell(paper: Paper, cell: Cell, place: Place, wait: bool) -> bool:
    """Run a cell and those that it needs, unless they are stored; store its figures.

    Return False if another process runs it and `wait` is not set. A run from which others begin
    must also be here.
    """
    place.runs.mkdir(parents=True, exist_ok=True)
    folder, row = place.runs / cell.folder, paper.rows[cell.row]
    try:
        lock = FileLock(f"{folder}.lock").acquire(blocking=wait)
    except Timeout:
        return False
    with lock:
        place.store.reload()
        begins_others = any(one.start == cell.name for one in paper.rows.values())
        here = not begins_others or (folder / "best").exists()
        if (cell.name, cell.seed) in place.store.runs and here:
            paper.record(cell, place.store)
            return True
        for needed in paper.needs(cell):
            run_cell(paper, needed, place, wait=True)
        settings, record = paper.settings(cell, place.store), paper.record(cell, place.store)
        start = place.runs / Cell(row.start, cell.seed).folder if row.start else None
        if row.members:
            metrics = merged_runs(row.members, cell.seed, folder, place.runs)
        elif row.constant:
            metrics = constant_metrics(config_of(settings, cell.seed, place))
        else:
            run = train(config_of(settings, cell.seed, place, start), folder, **CONTROL)
            metrics = probed(run, settings, cell.seed, place) if row.probe else run.metrics
        found = scores(paper, cell, metrics)
        found |= {} if cell.point else paper.extras(cell.name, folder, metrics)
        stamp = stamp_of(metrics)
        figures = [
            Figure(cell.name, task, cell.seed, split, metric, value, *stamp)
            for (task, split, metric), value in found.items()
        ]
        place.store.add(cell.name, figures, record, place.command)
        if not begins_others:
            remove(folder / "best")
    return True


def config_of(
    settings: Mapping[str, Any], seed: int, place: Place, start: Path | None = None
) -> RunConfig:
    """Return the configuration of a run, which may begin with the weights of a run."""
    begin = {} if start is None else {"init": str(start)}
    return RunConfig(**settings, **begin, seed=seed, data=place.data, device=place.device)


def probed(run: Run, settings: Mapping[str, Any], seed: int, place: Place) -> dict[str, Any]:
    """Return the metrics of a logistic regression on the embeddings of a run's encoder."""
    from pretrain.probe import linear_evaluation

    kept = {key: settings[key] for key in OF_PROBE if key in settings}
    encoder = str(run.weights())
    config = config_of(kept | {"mode": "probe", "encoder": encoder}, seed, place)
    seconds = {"training_seconds": run.metrics["training_seconds"]}
    return linear_evaluation(config)[0] | seconds


def constant_metrics(config: RunConfig) -> dict[str, Any]:
    """Return the metrics of one prediction for all: the most frequent class of a split, or 0."""
    metrics: dict[str, Any] = {"dev": {}, "test": {}}
    for name, task in plain_tasks(config).items():
        for split, limit in (("dev", config.dev_limit), ("test", config.test_limit)):
            targets = task.read(data_folder(config.data), split, limit).targets
            if targets is not None:
                always = majority_metrics(task.kind, targets)
                always = always or task.kind.metrics(np.zeros_like(targets), targets)
                metrics[split][name] = always
    return metrics


def merged_runs(
    members: Mapping[str, Collection[str]], seed: int, folder: Path, runs: Path
) -> dict[str, Any]:
    """Return the metrics of an ensemble: majority vote of classes, mean of similarities."""
    folders = {
        task: [runs / Cell(name, seed).folder for name in names] for task, names in members.items()
    }
    return ensemble_runs(folders, "vote", seed, folder, overwrite=True)


def scores(
    paper: Paper, cell: Cell, metrics: Mapping[str, Any]
) -> dict[tuple[str, str, str], float]:
    """Return the figures of a run that are stored, by task, split and metric.

    Of a point of a grid these are only the scores on dev.
    """
    found: dict[tuple[str, str, str], float] = {}
    for split in ("dev",) if cell.point else ("dev", "test"):
        tasks = {key: one for key, one in metrics.get(split, {}).items() if isinstance(one, dict)}
        for task, several in tasks.items():
            own = {key: value for key, value in several.items() if key in paper.metrics}
            found |= {(task, split, key): value for key, value in own.items()}
        if both := overall(tasks):
            found[OVERALL[0], split, OVERALL[1]] = both[OVERALL[1]]
    if "training_seconds" in metrics:
        found["all", "train", "seconds"] = metrics["training_seconds"]
    return found


def stamp_of(metrics: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the commit, the class of the machine, and the day of a run."""
    found = metrics.get("environment") or environment()
    own = f"{found['cpu']} {found['bfloat16']}"
    machine = own if found["gpu"] == "none" else str(found["gpu"])
    return commit(), machine, str(found["date"])[:10]


def commit() -> str:
    """Return the commit of the code, with a plus sign if it was changed; empty without one."""
    tree = Path(__file__).parents[1]
    if which("git") is None or not (tree / ".git").exists():  # an installed wheel
        return ""
    git = ["git", "-C", str(tree)]
    name = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "*.py", "*.toml"])
    return name.stdout.strip() + "+" * (name.returncode == 0 and changed.returncode == 1)
