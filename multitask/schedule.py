"""Schedules group sampled batches into optimiser steps: joint, individual, first-then-joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from common.settings import Count, Name, Settings, setting
from multitask.errors import RunError
from multitask.sampling import FIRST_EPOCHS, FIRST_TASK, FirstTask, Sampler, Workload

if TYPE_CHECKING:
    from multitask.config import RunConfig


class Schedule(Settings):
    """The grouping of batches into steps; with `one_batch` every batch is a separate step."""

    one_batch: ClassVar[bool] = False

    def first(self) -> FirstTask | None:
        """Return the only task of the first epochs, or None if all tasks are sampled."""
        return None


class Joint(Schedule, name="joint"):
    """All tasks drawn for a step update the encoder together."""


class Individual(Schedule, name="individual"):
    """Every batch is a separate step (Liu et al., 2019)."""

    one_batch = True


class FirstThenJoint(Schedule, name="first-then-joint"):
    """First epochs with one task, then joint (BEES, max-data-task-first, complex-task-first)."""

    first_task: Name | None = setting(None, help=FIRST_TASK, metavar="TASK")
    first_epochs: Count = setting(1, help=FIRST_EPOCHS)

    def first(self) -> FirstTask:
        return FirstTask(self.first_task, self.first_epochs)


@dataclass(frozen=True)
class Plan:
    """The tasks of every step of a run.

    The first `first_epochs` epochs train only the task with index `first`, one batch per step. Then
    each step takes `work.batches_per_step` of the sampler's batches. `work` describes the whole
    run; the sampler sees only the epochs after the first ones, for example for annealing.
    """

    work: Workload
    sampler: Sampler
    first: int = 0
    first_epochs: int = 0

    def steps(self, epoch: int) -> list[np.ndarray]:
        """Return the task indices of the batches of each step of an epoch (from 1)."""
        size = self.work.batches_per_step
        if epoch <= self.first_epochs:
            alone = self.work.steps_per_epoch or self.work.batches_per_pass[self.first]
            batches, size = np.full(alone, self.first), 1
        else:
            left = replace(self.work, epochs=max(1, self.work.epochs - self.first_epochs))
            batches = self.sampler.batches(left, epoch - self.first_epochs)
        return [batches[i : i + size] for i in range(0, len(batches), size)]


def build_plan(
    config: RunConfig, sizes: Sequence[int], available: Sequence[int] | None = None
) -> Plan:
    """Return the plan of a configuration for tasks with `sizes` training examples.

    `available` are the sizes before any limit, which determine the largest task; None means
    `sizes`. Raise RunError if two tasks are the largest and the first task is not named.
    """
    work = Workload(
        sizes=tuple(sizes),
        batch_size=config.batch_size,
        batches_per_step=config.step_batches,
        epochs=config.epochs,
        steps_per_epoch=config.steps_per_epoch,
        seed=config.seed,
    )
    if (first := config.first()) is None:
        return Plan(work, config.sampling)
    return Plan(work, config.sampling, first_place(config, available or sizes), first.epochs)


def first_place(config: RunConfig, available: Sequence[int]) -> int:
    """Return the index of the task of the first epochs: the named one, or the largest."""
    first = config.first()
    if first is not None and first.task is not None:
        return config.tasks.index(first.task)
    largest = int(np.argmax(available))
    if list(available).count(available[largest]) > 1:
        shown = zip(config.tasks, available, strict=True)
        raise RunError(
            f"{config.first_method}: expected one task larger than the others, found "
            f"{', '.join(f'{task} {size:,}' for task, size in shown)}; --first-task TASK decides"
        )
    return largest
