"""How the sampled batches become optimiser steps: joint, individual, first one task, then joint."""

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
    """How batches are grouped into steps; with `one_batch` every batch is a step of its own."""

    one_batch: ClassVar[bool] = False

    def first(self) -> FirstTask | None:
        """The task that has the first epochs to itself; None where all tasks are sampled."""
        return None


class Joint(Schedule, name="joint"):
    """All tasks drawn for a step move the encoder together."""


class Individual(Schedule, name="individual"):
    """Every batch is a step of its own (Liu et al., 2019)."""

    one_batch = True


class FirstThenJoint(Schedule, name="first-then-joint"):
    """Epochs of one task, then joint (BEES, max-data-task-first and complex-task-first)."""

    first_task: Name | None = setting(None, help=FIRST_TASK, metavar="TASK")
    first_epochs: Count = setting(1, help=FIRST_EPOCHS)

    def first(self) -> FirstTask:
        return FirstTask(self.first_task, self.first_epochs)


@dataclass(frozen=True)
class Plan:
    """The tasks of every step of a run.

    In the first `first_epochs` epochs the task `first` has the run to itself, a batch per step;
    then the sampler's batches are taken `work.batches_per_step` at a time. `work` is the whole
    run's; what is annealed is annealed over the epochs that are left.
    """

    work: Workload
    sampler: Sampler
    first: int = 0
    first_epochs: int = 0

    def steps(self, epoch: int) -> list[np.ndarray]:
        """Task indices of the batches of each step of an epoch (from 1)."""
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
    """The plan of a configuration for tasks of `sizes` training examples.

    `available` are the sizes before any limit, by which the largest task is the largest; None for
    `sizes`. Raises RunError where two tasks are the largest and none is named.
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
    """Which task has the first epochs to itself: the one that is named, or the largest."""
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
