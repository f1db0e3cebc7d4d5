"""Objectives that replace the cross-entropy of classification tasks: what they have in common.

They are in contrastive.py and lacon.py.
"""

from __future__ import annotations

from typing import ClassVar

from common.errors import UserError
from losses.objectives import TrainingObjective
from tasks.base import Task


class Objective(TrainingObjective):
    """An objective that replaces the cross-entropy of classification tasks.

    `trains_only_heads`: it can train heads on a frozen encoder. `own_head`: it has its own head.
    `own_loss`: it does not use the cross-entropy of the task's kind. `single_embedding`: it accepts
    only one embedding per example.
    """

    trains_only_heads: ClassVar[bool] = False
    own_head: ClassVar[bool] = False
    own_loss: ClassVar[bool] = False
    single_embedding: ClassVar[bool] = False

    def of_task(self, task: Task) -> Task:
        """Return a task with classes, trained by this objective."""
        raise UserError(f"objective {self.name}: expected a method of_task, found none")

    @property
    def least_batch(self) -> int:
        """Return the least batch size; some losses compare the examples of a batch."""
        return 1


def with_objective(task: Task, objective: Objective) -> Task:
    """Return the task trained by an objective; a task without classes is unchanged.

    Raise UserError if the objective returns no task, or one of another name.
    """
    if task.kind.classes is None:
        return task
    found = objective.of_task(task)
    if (name := getattr(found, "name", None)) != task.name:
        line = f"expected of_task to return the task {task.name}, found {name}"
        raise UserError(f"objective {objective.name}: {line}")
    return found
