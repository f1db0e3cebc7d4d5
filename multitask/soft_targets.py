"""Soft targets: the mean scores of a run's teachers for its training examples."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from common.errors import RunError, SettingsError
from common.files import is_run
from multitask.assembly import load_trained
from multitask.config_tasks import plain_tasks
from multitask.loop.evaluation import score_split
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks import data_folder
from tasks.base import Task
from tasks.data import tokenized
from tasks.own_task import tasks_by_name
from tasks.readers import Examples, limit_of


def teachers_by_task(config: RunConfig) -> dict[str, list[Path]]:
    """Return the runs that teach each task: those with the task, if a term has a weight for it.

    Raise RunError for a folder without a run, and SettingsError for a run of none of the tasks.
    """
    learning = [one for one in config.regularizers if one.learns_from_teacher]
    weighted = {task for one in learning for task in one.by_task(config.tasks)}
    found: dict[str, list[Path]] = {name: [] for name in config.tasks if name in weighted}
    for folder in map(Path, config.teacher):
        stored = {} if Run(folder).exported else Run(folder).read("config.json")
        if not is_run(stored) or stored["mode"] == "ensemble":
            raise RunError(f"{folder}: expected the folder of a run; name each run of an ensemble")
        if not (taught := [name for name in found if name in tasks_by_name(stored["tasks"])]):
            raise SettingsError(f"teacher: {folder} is not a run of {', '.join(found)}")
        for name in taught:
            found[name].append(folder)
    return found


def soft_targets(config: RunConfig) -> dict[str, Tensor]:
    """Return the teachers' mean scores, (n, C) or (n,), for the training examples of each task.

    Only tasks with a teacher are in it. Print a line per task. Raise SettingsError if a teacher has
    none of the tasks, and RunError if its task has other classes.
    """
    teachers, found = teachers_by_task(config), {}
    for name, task in plain_tasks(config).items():
        runs = teachers.get(name, [])
        given = ", ".join(map(str, runs)) or "no teacher, only its labels"
        print(f"{name}: learns from {given}", flush=True)
        if runs:
            limit = limit_of(config.limit, name)
            examples = task.read(data_folder(config.data), "train", limit)
            several = [scores_of(run, config, task, examples) for run in runs]
            found[name] = torch.stack(several).mean(0)
    return found


def scores_of(folder: Path, config: RunConfig, task: Task, examples: Examples) -> Tensor:
    """Return one teacher's scores, (n, C) or (n,), of some examples.

    The teacher may have another encoder, tokeniser or head than the student: a cross-encoder
    teaches a bi-encoder.
    """
    stored, tasks, model = load_trained(folder, config.device)
    model.precision = stored.precision
    theirs, name = tasks[task.name], task.name
    if config.tasks[name].outputs != stored.tasks[name].outputs or (
        (task.kind.columns, task.kind.class_names) != (theirs.kind.columns, theirs.kind.class_names)
    ):
        raise RunError(f"{folder}: its task {task.name} has other classes than that of this run")
    split = tokenized(theirs, examples, model.bi_encoder.tokenizer)
    return torch.from_numpy(score_split(model, theirs, split))
