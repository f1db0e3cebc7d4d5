"""The encoder of a trained run, with the own layers of a task."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from pathlib import Path

from common.errors import Notice, RunError
from minbert.bi_encoder import BiEncoder
from minbert.device import choose_device
from minbert.precision import PrecisionChoice
from multitask.assembly import load_trained
from multitask.model import EncoderWithHeads
from multitask.run_folder import RunFolder
from multitask.settings.config import RunConfig


def encoder_of_run(run: Path, config: RunConfig, task: str | None = None) -> BiEncoder:
    """Return the encoder that a run has kept, or an export, with the layers of `task`.

    `config` has the pooling and the device, and may have the limit of tokens, which is otherwise
    that of the run. Warn and raise as `bi_encoder_of` does; raise RunError, too, for a run or a
    task that has only learnt to read pairs as one sequence.
    """
    folder = RunFolder(run)
    stored, weights = folder.settings(), folder.weights()
    tasks = {**stored["task_options"], **stored["own_tasks"]}
    joint = {name: tasks.get(name, {}).get("pair") == "joint" for name in stored["tasks"]}
    check_embeds_texts(joint, task, f"{run}: ")
    if stored.get("branch") is None:
        check_task(task, (), "--task")
        pooling = config.pooling or stored.get("pooling")
        limit = config.max_tokens or stored.get("max_tokens")
        model = BiEncoder.from_pretrained(weights, pooling, limit)
        folder.warn_if_unfinished()
        return model.to(choose_device(config.device))
    _, _, trained = load_trained(run, config.device, config.max_tokens)
    model = bi_encoder_of(trained, task, "--task")
    model.pooling = config.pooling or model.pooling
    return model


def report_precision(requested: str, choice: PrecisionChoice) -> None:
    """Print the precision that `auto` became on standard error.

    Call this function after the last error that a user can cause, which is the only line then.
    """
    if requested == "auto":
        print(choice, file=sys.stderr, flush=True)


def bi_encoder_of(model: EncoderWithHeads, task: str | None, name: str) -> BiEncoder:
    """Return the bi-encoder of a run with the layers of a task; the shared one for None.

    Warn with a Notice for None if there are branches. Raise RunError for a task that
    is not in a run with branches. `name` is that of the argument that chooses the task.
    """
    check_task(task, model.selectable_tasks, name)
    if task is None and model.branches:
        names = ", ".join(model.branches)
        line = f"embeddings of the shared encoder, without a branch; {name} chooses one: {names}"
        warnings.warn(line, Notice, stacklevel=3)
    return model.bi_encoder_of(task)


def check_task(task: str | None, known: tuple[str, ...], name: str) -> None:
    """Raise RunError for a task that is not among those of a run with branches."""
    if task is not None and task not in known:
        expected = f"one of {', '.join(known)}" if known else "none for a run without branches"
        raise RunError(f"{name}: expected {expected}, found {task}")


def check_embeds_texts(joint: Mapping[str, bool], task: str | None, where: str = "") -> None:
    """Raise RunError, after `where`, if a run or its `task` only reads pairs as one sequence.

    `joint` is whether each task reads them so. The encoder of a run with only such tasks has not
    learnt to embed single texts; neither have the layers of such a task.
    """
    names = [one for one in joint if one == task] or list(joint)
    if names and all(joint[name] for name in names):
        what = "run" if task is None else "task"
        line = f"expected a {what} that embeds single texts, found only pairs in one sequence"
        raise RunError(f"{where}{line}: {', '.join(names)}")


def of_one_task(config: RunConfig, task: str) -> RunConfig:
    """Return the configuration of a run, reduced to one of its tasks and without branches."""
    # The metric that selects an epoch may be one of another task.
    one = {"tasks": (task,), "branch": None, "branch_only": (), "auxiliary": (), "select_by": None}
    by_task = {
        key: {task: value[task]} if task in value else {}
        for key in ("limit", "label_smoothing", "class_weights")
        if isinstance(value := getattr(config, key), Mapping)
    }
    methods = {"combiner": "sum", "sampling": "round-robin", "schedule": "joint"}
    return config.changed(**one, **by_task, **methods, regularizers=(), teacher=())
