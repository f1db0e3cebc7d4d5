"""Ensembles of runs: predictions are merged and written as a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Any

from common.errors import SettingsError
from ensemble.merge import merge
from multitask.run_folder import RunFolder
from multitask.stored_runs import (
    StoredRun,
    check_same_rows,
    merged_run,
    read_run,
    write_merged_run,
)
from tasks import TASK_NAMES, in_order
from tasks.kinds import Kind
from tasks.metrics import overall
from tasks.own_task import NAME, OwnTask
from tasks.predictions import Scores, UserError, read_scores_of

SPLITS = ("dev", "test")


def tasks_of_run(run: Path) -> tuple[str, ...]:
    """Return the tasks with dev scores in a finished run or a folder of predictions."""
    if RunFolder(run).config_file.exists() and read_run(run).metrics is None:
        raise UserError(f"{run}: expected a finished run, found no metrics.json")
    found = tuple(
        task
        for task in in_order([*TASK_NAMES, *own_tasks_of([run])])
        if RunFolder(run).scores(task, "dev").exists()
    )
    if not found:
        raise UserError(
            f"{run}: expected a finished run, found no predictions/TASK-dev-probabilities.npz"
        )
    return found


def own_tasks_of(runs: Iterable[Path]) -> dict[str, OwnTask]:
    """Return the own tasks of the runs; raise UserError if definitions differ."""
    found: dict[str, OwnTask] = {}
    for run in runs:
        if not RunFolder(run).config_file.exists():
            continue
        for name, one in read_run(run).own_tasks.items():
            mine, theirs = found.setdefault(name, one).outputs, one.outputs
            for key in mine:
                if mine[key] != theirs[key]:
                    raise UserError(
                        f"{run}: {name}: {key}: expected {mine[key]}, as in another run, found "
                        f"{theirs[key]}"
                    )
    return found


def output_options_of(task: str, runs: Sequence[Path]) -> dict[str, str]:
    """Return the options of a task that decide its outputs, which all runs share."""
    stored = [run for run in runs if RunFolder(run).config_file.exists()]
    found = {run: read_run(run).output_options(task) for run in stored}
    known = next(iter(found.values()), {})
    for run, options in found.items():
        for key in (*known, *options):
            if options.get(key) != known.get(key):
                raise UserError(
                    f"{run}: {task}: expected {known.get(key, 'all')} {key}, as in another run, "
                    f"found {options.get(key, 'all')}"
                )
    return known


def names_of(runs: Sequence[Path]) -> dict[str, Path]:
    """Return a unique name for each run: the name of its folder, or else its whole path."""
    every = list(dict.fromkeys(runs))
    names = [run.resolve().name for run in every]  # resolved, so that "." has a name
    return {
        name if names.count(name) == 1 else str(run): run
        for name, run in zip(names, every, strict=True)
    }


def read_splits(task: str, runs: Mapping[str, Path], kind: Kind) -> dict[str, dict[str, Scores]]:
    """Return scores of a task by split and run; skip test with a message if some runs lack it."""
    files = {
        split: {name: RunFolder(run).scores(task, split) for name, run in runs.items()}
        for split in SPLITS
    }
    found = {}
    for split, several in files.items():
        without = [str(runs[name]) for name, file in several.items() if not file.exists()]
        if split == "dev" or not without:
            check_same_rows(runs.values(), task, split)
            found[split] = {name: read_scores_of(file, kind) for name, file in several.items()}
        elif len(without) < len(runs):
            print(f"{task}: {split} skipped, no predictions found in {', '.join(without)}")
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
    every = list(dict.fromkeys(run for runs in members.values() for run in runs))
    own = {name: one.to_json() for name, one in own_tasks_of(every).items() if name in members}
    every_option = {task: output_options_of(task, runs) for task, runs in members.items()}
    options = {task: found for task, found in every_option.items() if found}
    config = {
        "mode": "ensemble",
        "tasks": list(members),
        "seed": seed,
        "method": method,
        "members": {
            task: [str(run) if run.is_absolute() else relpath(run, folder) for run in runs]
            for task, runs in members.items()
        },
    }
    config |= ({"own_tasks": own} if own else {}) | ({"task_options": options} if options else {})
    merged = {}
    with merged_run(folder, config, every, overwrite):
        for task, runs in members.items():
            kind = StoredRun(folder, config, None).task(task).kind
            splits = read_splits(task, names_of(runs), kind)
            merged[task] = merge(splits, kind, method, seed)
        dev = {task: found.metrics for task, found in merged.items()}
        parts = {
            task: {
                "weights": dict(found.weights),
                "counts": [found.weights.get(name, 0) for name in names_of(members[task])],
                "dev": dict(found.members),
                "reported_examples": found.reported,
                "selected_on_examples": found.selected_on,
            }
            for task, found in merged.items()
        }
        result = {"dev": dev | overall(dev), "method": method, "members": parts}
        tables = {task: found.splits for task, found in merged.items()}
        write_merged_run(StoredRun(folder, config, result), tables, scored_files(every))
    return result


def scored_files(runs: Sequence[Path]) -> dict[str, str]:
    """Return the checksums of the files of dev and test that runs read, those of the first one."""
    every = [RunFolder(run).data() for run in reversed(runs)]
    return {k: one[k] for one in every for k in one if k.endswith((" dev", " test"))}


def members_of(runs: Sequence[str]) -> dict[str, list[Path]]:
    """Return the runs of each task, in the usual order of tasks."""
    found: dict[str, list[Path]] = {}
    for text in runs:
        wanted, run = task_and_run(text)
        there = tasks_of_run(run)
        if wanted is not None and wanted not in there:
            found_here = ", ".join(there)
            raise SettingsError(f"runs {text}: expected a run of {wanted}, found {found_here}")
        for name in [wanted] if wanted else there:
            found.setdefault(name, []).append(run)
    for task, several in found.items():
        folders = [run.resolve() for run in several]
        for run, folder in zip(several, folders, strict=True):
            if folders.count(folder) > 1:
                raise SettingsError(f"runs: expected each run once for {task}, found {run} twice")
    return {task: found[task] for task in in_order(found)}


def task_and_run(text: str) -> tuple[str | None, Path]:
    """Split `TASK=RUN` as `name_and_path` does, if the first part can be the name of a task."""
    task, run = name_and_path(text)
    return (task, run) if task and NAME.fullmatch(task) else (None, Path(text))


def name_and_path(text: str) -> tuple[str | None, Path]:
    """Split `NAME=PATH`; a text that is the path of an existing file or folder is not split."""
    name, sign, rest = text.partition("=")
    return (None, Path(text)) if not sign or Path(text).exists() else (name, Path(rest))
