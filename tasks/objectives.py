"""What a classification task may be trained by instead of cross-entropy, by name."""

from __future__ import annotations

from collections.abc import Callable

from tasks.augmented import augmented
from tasks.base import Task
from tasks.contrastive import apart, linear, scl
from tasks.lacon import lacon, lacon_fusion, projected
from tasks.leam import leam
from tasks.lsan import lsan
from tasks.settings import ObjectiveSettings

OBJECTIVES: dict[str, Callable[[Task, ObjectiveSettings], Task]] = {
    "scl": scl,
    "ls": linear,
    "epo": apart,
    "cl": augmented,
    "projection": projected,
    "leam": leam,
    "lsan": lsan,
    "lacon": lacon,
    "lacon-fusion": lacon_fusion,
}


def with_objective(task: Task, objective: str, settings: ObjectiveSettings) -> Task:
    """The task trained by an objective; one without classes stays as it is."""
    if task.kind.classes is None:
        return task
    return OBJECTIVES[objective](task, settings)
