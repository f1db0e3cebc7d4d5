"""Ensembles of runs: predictions are merged and written as a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from ensemble.merge import merge
from multitask.run_folder import write_merged
from multitask.runs import Run, check_same_rows
from tasks import TASKS, in_order
from tasks.metrics import overall
from tasks.own_task import NAME
from tasks.predictions import Scores, UserError


def tasks_of_run(folder: Path) -> tuple[str, ...]:
    """Return the tasks of a finished run that have dev scores; raise UserError without any."""
    run = Run(folder)
    if not run.metrics:
        raise UserError(f"{folder}: the run is not finished (no metrics.json)")
    known = [task for task in run.tasks if task in TASKS or "train" in run.tasks[task]]
    found = [task for task in known if run.scores_file(task, "dev").exists()]
    if not found:
        file = "predictions/TASK-dev-probabilities.npz"
        raise UserError(f"{folder}: the run has no predictions (no {file})")
    return in_order(found)


def members_of(runs: Sequence[str]) -> dict[str, list[Path]]:
    """Return the runs of each task, in the usual order of tasks, from texts `[TASK=]RUN`."""
    found: dict[str, list[Path]] = {}
    for wanted, run in named_runs(runs):
        if wanted is not None and not NAME.fullmatch(wanted):  # it is part of the path
            wanted, run = None, Path(f"{wanted}={run}")
        there = tasks_of_run(run)
        if wanted not in (None, *there):
            line = f"the run has no task {wanted}, only {', '.join(there)}"
            raise SettingsError(f"runs {wanted}={run}: {line}")
        for name in [wanted] if wanted else there:
            several = found.setdefault(name, [])
            if run.resolve() in [one.resolve() for one in several]:
                raise SettingsError(f"runs: {run} is named twice for {name}")
            several.append(run)
    return {task: found[task] for task in in_order(found)}


def named_runs(texts: Sequence[str]) -> list[tuple[str | None, Path]]:
    """Return the runs of texts `[NAME=]RUN`, each with its name or None.

    The folder of a command with `--seeds` stands for the runs of its seeds. A text that is the path
    of an existing file or folder is not split.
    """
    found: list[tuple[str | None, Path]] = []
    for text in texts:
        name, sign, rest = text.partition("=")
        split = sign and not Path(text).exists()
        folder = Path(rest if split else text)
        several = sorted(folder.glob("seed-*")) if not (folder / "config.json").exists() else []
        found += [(name if split else None, one) for one in several or [folder]]
    return found


def ensemble_runs(
    members: Mapping[str, Sequence[Path]],
    method: str,
    seed: int,
    folder: Path,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Merge each task's runs and write prediction files, scores and metrics.json into `folder`.

    Returns the content of metrics.json. Raises UserError or RunError.
    """
    stored = {run: Run(run) for runs in members.values() for run in runs}
    config = {
        "mode": "ensemble",
        "tasks": [stored[runs[0]].tasks[task] for task, runs in members.items()],
        "seed": seed,
        "method": method,
        "members": {
            task: [str(run) if run.is_absolute() else relpath(run, folder) for run in runs]
            for task, runs in members.items()
        },
    }

    def merge_all() -> Any:
        merged = {}
        for task, runs in members.items():
            kind, several = stored[runs[0]].described(task).build().kind, [stored[r] for r in runs]
            merged[task] = merge(read_splits(task, several), kind, method, seed)
        dev = {task: found.metrics for task, found in merged.items()}
        parts = {task: found.members for task, found in merged.items()}
        result = {"dev": dev | overall(dev), "method": method, "members": parts}
        files = [Run(run).read("data.json") for run in reversed(stored)]
        data = {k: v for one in files for k, v in one.items() if k.endswith((" dev", " test"))}
        return result, {task: found.splits for task, found in merged.items()}, data

    return write_merged(folder, config, stored, overwrite, merge_all)


def read_splits(task: str, runs: Sequence[Run]) -> dict[str, dict[str, Scores]]:
    """Return scores of a task by split and name of a run, that of its folder or its whole path.

    Raise UserError if the task has other outputs in another run. The split test is skipped with a
    message if some runs lack it.
    """
    expected = runs[0].described(task).outputs
    for run in runs:
        for key, found in run.described(task).outputs.items():
            if found != expected.get(key):
                line = f"expected {key} {expected.get(key)}, as in {runs[0].folder}, found {found}"
                raise UserError(f"{run.folder}: {task}: {line}")
    names = [run.folder.resolve().name for run in runs]  # resolved, so that "." has a name
    names = [n if names.count(n) == 1 else str(r.folder) for n, r in zip(names, runs, strict=True)]
    tables = {}
    for split in ("dev", "test"):
        without = [str(run.folder) for run in runs if not run.scores_file(task, split).exists()]
        if split == "dev" or not without:
            check_same_rows(runs, task, split)
            several = [run.scores(task, split) for run in runs]
            tables[split] = dict(zip(names, several, strict=True))
        elif len(without) < len(runs):
            print(f"{task}: {split} skipped, no predictions found in {', '.join(without)}")
    return tables
