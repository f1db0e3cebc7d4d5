"""Soft targets: the scores of a run's teachers for its training examples.

They are computed once for a teacher and its training examples, and kept in the teacher's folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from common.array_files import read_arrays, write_arrays
from common.errors import RunError, SettingsError
from common.files import file_lock
from multitask.assembly import load_trained
from multitask.config_tasks import plain_tasks
from multitask.loop.evaluation import score_split
from multitask.model import EncoderWithHeads
from multitask.run_folder import SOFT_TARGETS, RunFolder
from multitask.settings.config import RunConfig
from multitask.teachers import teachers_by_task
from tasks import data_folder
from tasks.base import Task
from tasks.data import SoftTargets, Split, Splits, read_split, tokenized
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
            train = several["train"]
            if len(soft[name].scores) != len(train.examples):
                raise SettingsError(f"teacher: expected a task of its own examples, found {name}")
            if (theirs := soft[name].embeddings) is not None:
                width = model.embedding_width(name)
                if theirs.shape[-1] != width:
                    line = f"expected a teacher of {name} with embeddings of the width {width}"
                    raise SettingsError(f"teacher: {line}, found {theirs.shape[-1]}")
            result[name]["train"] = replace(train, soft=soft[name])
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
        if embeddings and len(shares) > 1:
            line = f"expected one teacher of {name}, found {len(shares)}"
            raise SettingsError(f"teacher: {line}")
        if embeddings and task.joint:
            line = f"expected a task with an embedding of each text, found {name} with pair joint"
            raise SettingsError(f"teacher: {line}")
        limit = limit_of(config.limit, name)
        examples = read_split(task, data_folder(config.data), "train", limit)
        found = [stored_or_computed(one, config, task, examples, embeddings) for one in shares]
        scores = mean_scores([one.scores for one in found], list(shares.values()))
        result[name] = SoftTargets(scores, found[0].embeddings)
    return result


def mean_scores(several: Sequence[Tensor], shares: Sequence[Fraction]) -> Tensor:
    """Return the mean of scores (n, C) or (n,), each with its share, which need not add up to 1."""
    stacked = torch.stack(list(several))
    if len(set(shares)) == 1:
        return stacked.mean(0)
    weights = torch.tensor([float(one / sum(shares)) for one in shares])
    return torch.tensordot(weights, stacked, dims=1)


def stored_or_computed(
    folder: Path, config: RunConfig, task: Task, examples: Examples, embeddings: bool
) -> SoftTargets:
    """Return the scores of one teacher for the training examples of a student's task.

    They are read from the teacher's folder if it has computed them for the same weights and texts.
    If the folder cannot be written, they are not stored there. The teacher may have another
    encoder, tokeniser or head than the student. Raise RunError for weights of another
    run, a damaged file of scores and a task with other classes.
    """
    outputs = task.kind.columns, task.kind.class_names, signature(config, task.name)
    weights = RunFolder(folder).weights_checksum()
    content = repr((weights, examples.ids, examples.texts, embeddings, outputs))
    key = hashlib.sha256(content.encode()).hexdigest()[:16]
    file = folder / SOFT_TARGETS / f"{task.name}-{key}.npz"

    def compute() -> dict[str, np.ndarray]:
        return computed(folder, config, task, examples, embeddings)

    arrays = read_if_stored(file) or stored_once(file, compute)
    check_scores(file, arrays, task, len(examples))
    return SoftTargets(**{key: torch.from_numpy(array) for key, array in arrays.items()})


def read_if_stored(file: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file of soft targets, or none if there is no such file.

    Raise RunError for a damaged file.
    """
    what = "soft targets, which are computed again if the file is deleted"
    return read_arrays(file, what, RunError) if file.exists() else {}


def check_scores(file: Path, arrays: Mapping[str, np.ndarray], task: Task, count: int) -> None:
    """Raise RunError for soft targets that are not those of `count` examples of a task."""
    scores = arrays.get("scores", np.empty(0))
    fits = len(scores) == count and scores.shape[1:] in ((), (task.kind.columns,))
    if not (fits and arrays.keys() <= {"scores", "embeddings"} and np.isfinite(scores).all()):
        line = f"expected finite scores of {count} examples, found others"
        raise RunError(f"{file}: {line}; delete the file, and they are computed again")


def stored_once(file: Path, compute: Callable[[], dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Compute soft targets and store them, unless another student does so in the meantime.

    Students that start at the same time thus have the same scores. In a folder that cannot be
    written, soft targets are computed but not stored.
    """
    with ExitStack() as held:
        try:
            file.parent.mkdir(exist_ok=True)
            held.enter_context(file_lock(file))
        except OSError as error:
            print_not_stored(file, error)
            return compute()
        if arrays := read_if_stored(file):
            return arrays
        arrays = compute()
        try:
            write_arrays(file, arrays)
        except OSError as error:
            print_not_stored(file, error)
        return arrays


def print_not_stored(file: Path, error: OSError) -> None:
    line = "the scores of this teacher are not stored and will be computed again"
    print(f"{file.parent}: cannot be written ({error.strerror}): {line}", flush=True)


def signature(config: RunConfig, task: str) -> Any:
    """Return what defines the outputs of an own task's head.

    How the texts are encoded may differ: a cross-encoder teaches a bi-encoder.
    """
    own = config.own_tasks.get(task)
    return own and own.outputs


def computed(
    folder: Path, config: RunConfig, task: Task, examples: Examples, embeddings: bool
) -> dict[str, np.ndarray]:
    """Return a teacher's `scores`, (n, C) or (n,), of some examples, and `embeddings` if asked for.

    Embeddings are (n, texts, H), float16. Raise RunError if the teacher's task has other classes,
    and SettingsError if it has no embeddings of single texts.
    """
    stored, tasks, model = load_trained(folder, config.device)
    model.precision = stored.precision
    theirs, name = tasks[task.name], task.name
    for what, mine, found in (
        ("number of classes", task.kind.columns, theirs.kind.columns),
        ("classes", task.kind.class_names, theirs.kind.class_names),
        ("description", signature(config, name), signature(stored, name)),
    ):
        if mine != found:
            raise RunError(f"{folder}: {name}: expected the {what} {mine}, found {found}")
    split = tokenized(theirs, examples, model.bi_encoder.tokenizer)
    result = {"scores": score_split(model, theirs, split)}
    if embeddings:
        if theirs.joint or model.pooling_of(name) is not None:
            line = f"expected a teacher with sentence embeddings of {name}"
            raise SettingsError(f"teacher: {line}, found {folder}")
        encode = model.bi_encoder_of(name).encode
        columns = [encode(texts, normalize=False) for texts in examples.texts]
        result["embeddings"] = np.stack(columns, 1).astype(np.float16)
    return result
