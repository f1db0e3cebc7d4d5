"""Soft targets: the scores of a run's teachers for its training examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError, SettingsError
from multitask.assembly import load_trained
from multitask.config_tasks import plain_tasks
from multitask.loop.evaluation import score_split
from multitask.model import EncoderWithHeads
from multitask.settings.config import RunConfig
from multitask.teachers import teachers_by_task
from tasks import data_folder
from tasks.base import Task
from tasks.data import SoftTargets, Split, Splits, tokenized
from tasks.readers import Examples, limit_of


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
    """Return the scores of the teachers for the training examples of each task that they have.

    The scores of several teachers of a task are averaged. Raise SettingsError if a teacher has none
    of the tasks or if embeddings of several are asked for, and RunError if a teacher's task has
    other classes.
    """
    teachers = teachers_by_task(config)
    embeddings = any(one.needs_embeddings for one in config.regularizers)
    result = {}
    for name, task in plain_tasks(config).items():
        if not (shares := teachers.get(name)):
            continue
        if embeddings and (len(shares) > 1 or task.joint):
            line = f"{name} needs one teacher, and an embedding of each text (--pair bi)"
            raise SettingsError(f"distillation_embeddings: {line}")
        limit = limit_of(config.limit, name)
        examples = task.read(data_folder(config.data), "train", limit)
        found = [soft_targets_of(run, config, task, examples, embeddings) for run in shares]
        scores = mean_scores([one.scores for one in found], list(shares.values()))
        result[name] = SoftTargets(scores, found[0].embeddings)
    return result


def mean_scores(several: Sequence[Tensor], shares: Sequence[float]) -> Tensor:
    """Return the mean of scores (n, C) or (n,), each with its share, which need not add up to 1."""
    stacked = torch.stack(list(several))
    if len(set(shares)) == 1:
        return stacked.mean(0)
    return torch.tensordot(torch.tensor(shares) / sum(shares), stacked, dims=1)


def soft_targets_of(
    folder: Path, config: RunConfig, task: Task, examples: Examples, embeddings: bool
) -> SoftTargets:
    """Return one teacher's scores, (n, C) or (n,), of some examples, and embeddings if asked for.

    Embeddings are (n, texts, H). The teacher may have another encoder, tokeniser or head than the
    student: a cross-encoder teaches a bi-encoder. Raise RunError if its task has other classes.
    """
    stored, tasks, model = load_trained(folder, config.device)
    model.precision = stored.precision
    theirs, own = tasks[task.name], config.own_tasks.get(task.name)
    described = stored.own_tasks.get(task.name)
    if (own and own.outputs) != (described and described.outputs) or (
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
