"""Soft targets: the scores of a run's teachers for its training examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from common.errors import RunError, SettingsError
from common.files import is_run
from multitask.assembly import load_trained
from multitask.config_tasks import plain_tasks
from multitask.loop.evaluation import score_split
from multitask.model import EncoderWithHeads
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks import data_folder
from tasks.base import Task
from tasks.data import SoftTargets, Split, Splits, tokenized
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


def with_soft_targets(
    config: RunConfig, splits: Splits, model: EncoderWithHeads
) -> dict[str, dict[str, Split]]:
    """Return splits whose training examples have the soft targets of the teachers of their task.

    Print a line per task. Raise SettingsError and RunError as `soft_targets` does, and
    SettingsError if embeddings are to follow those of another width.
    """
    teachers, soft = teachers_by_task(config), soft_targets(config)
    result = {}
    for name, several in splits.items():
        given = ", ".join(map(str, teachers.get(name, ()))) or "no teacher, only its labels"
        print(f"{name}: learns from {given}", flush=True)
        result[name] = dict(several)
        if name in soft:
            theirs, width = soft[name].embeddings, model.embedding_width(name)
            if theirs is not None and theirs.shape[-1] != width:
                line = f"its embeddings of {name} have the width {theirs.shape[-1]}, not {width}"
                raise SettingsError(f"teacher: {line}")
            result[name]["train"] = replace(several["train"], soft=soft[name])
    return result


def soft_targets(config: RunConfig) -> dict[str, SoftTargets]:
    """Return the teachers' mean scores for the training examples of each task that has teachers.

    Raise SettingsError if a teacher has none of the tasks or if embeddings of several are asked
    for, and RunError if a teacher's task has other classes.
    """
    embeddings = any(one.needs_embeddings for one in config.regularizers)
    tasks, result = plain_tasks(config), {}
    for name, runs in teachers_by_task(config).items():
        if not runs:
            continue
        if embeddings and (len(runs) > 1 or tasks[name].joint):
            line = f"{name} needs one teacher, and an embedding of each text (--pair bi)"
            raise SettingsError(f"distillation_embeddings: {line}")
        limit = limit_of(config.limit, name)
        examples = tasks[name].read(data_folder(config.data), "train", limit)
        found = [soft_targets_of(run, config, tasks[name], examples, embeddings) for run in runs]
        scores = torch.stack([one.scores for one in found]).mean(0)
        result[name] = SoftTargets(scores, found[0].embeddings)
    return result


def soft_targets_of(
    folder: Path, config: RunConfig, task: Task, examples: Examples, embeddings: bool
) -> SoftTargets:
    """Return one teacher's scores, (n, C) or (n,), of some examples, and embeddings if asked for.

    Embeddings are (n, texts, H). The teacher may have another encoder, tokeniser or head than the
    student: a cross-encoder teaches a bi-encoder. Raise RunError if its task has other classes.
    """
    stored, tasks, model = load_trained(folder, config.device)
    model.precision = stored.precision
    theirs, name = tasks[task.name], task.name
    if config.tasks[name].outputs != stored.tasks[name].outputs or (
        (task.kind.columns, task.kind.class_names) != (theirs.kind.columns, theirs.kind.class_names)
    ):
        raise RunError(f"{folder}: its task {task.name} has other classes than that of this run")
    split = tokenized(theirs, examples, model.bi_encoder.tokenizer)
    scores = torch.from_numpy(score_split(model, theirs, split))
    if not embeddings:
        return SoftTargets(scores)
    if theirs.joint or model.pooling_of(task.name) is not None:
        raise SettingsError(f"teacher: {folder} has no embeddings of the texts of {task.name}")
    encode = model.bi_encoder_of(task.name).encode
    columns = [encode(texts, normalize=False) for texts in examples.texts]
    return SoftTargets(scores, torch.from_numpy(np.stack(columns, 1)))
