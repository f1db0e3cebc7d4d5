"""Defaults of settings that follow from other settings. No torch is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from multitask.settings.methods import pretrains
from tasks import TASKS
from tasks.objectives import balance_of
from tasks.own_types import predicts

SCALE, UNSCALED = 5.0, 1.0  # scale of similarities: the default, and without such a task


def mode_of(found: Mapping[str, Any]) -> str:
    """Return the mode that follows from tasks and objective; empty if nothing is trained."""
    if pretrains(type(found["objective"])):
        return "pretrain"
    return {0: "", 1: "single"}.get(len(found["tasks"]), "multitask")


def has_similarities(settings: Mapping[str, Any], task: str) -> bool:
    """Return whether a task predicts a similarity, not a class; False for an unknown task."""
    own = settings.get("own_tasks", {})
    if task in own:
        return predicts(own[task]) == "similarity"
    known = TASKS | {one.name: one for one in settings.get("outside_tasks", ())}
    return task in known and known[task].predicts == "similarity"


def following_defaults(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that follow from other settings.

    `settings` has the objective and the schedule as objects.
    """
    return {
        "mode": mode_of(settings),
        "batches_per_step": default_batches(settings),
        "similarity_scale": default_scale(settings),
        "gradients": default_gradients(settings),
    }


def default_batches(settings: Mapping[str, Any]) -> int:
    """Return the default batches per step: the number of tasks, unless the schedule takes one."""
    alone = getattr(settings["schedule"], "one_batch", False) or settings["mode"] == "pretrain"
    return 1 if alone else max(1, len(settings["tasks"]))


def default_scale(settings: Mapping[str, Any]) -> float:
    """Return the default scale of similarities; 1 without such a task and in pre-training."""
    similar = any(has_similarities(settings, task) for task in settings["tasks"])
    return SCALE if similar and settings["mode"] != "pretrain" else UNSCALED


def default_gradients(found: Mapping[str, Any]) -> str:
    """Return `representation` if one batch has all objectives: one backward pass, not three."""
    several = balance_of(found["objective"]) is not None and len(found["tasks"]) == 1
    alone = found["batches_per_step"] in (None, 1)
    return "representation" if several and alone else "parameters"
