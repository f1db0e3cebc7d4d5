"""How the sampled batches become optimiser steps: joint, individual, first one task, then joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from multitask.errors import RunError
from multitask.sampling import SAMPLERS, Sampler, Workload

if TYPE_CHECKING:
    from multitask.config import RunConfig

FIRST = "first-then-joint"
SCHEDULES = ("joint", "individual", FIRST)


@dataclass(frozen=True)
class Plan:
    """The tasks of every step of a run.

    In the first `first_epochs` epochs the task `first` has the run to itself, a batch a step; then
    the sampler's batches are taken `work.batches_per_step` at a time.
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
            batches = self.sampler.batches(epoch - self.first_epochs)
        return [batches[i : i + size] for i in range(0, len(batches), size)]


def build_plan(
    config: RunConfig, sizes: Sequence[int], available: Sequence[int] | None = None
) -> Plan:
    """The plan of a configuration for tasks of `sizes` training examples.

    `available` are the sizes before any limit, by which the largest task is the largest; None for
    `sizes`. Raises RunError where two tasks are the largest and none is named.

    Joint: all tasks drawn for a step move it together. Individual: every batch is a step of its
    own (Liu et al., 2019). First-then-joint: BEES' max-data-task-first and complex-task-first. The
    hybrid sampler is the largest task first, then round-robin (BEES, section 4.5.1).
    """
    first_epochs = config.first_epochs if has_first_epochs(config) else 0
    work = Workload(
        sizes=tuple(sizes),
        batch_size=config.batch_size,
        batches_per_step=config.step_batches,
        epochs=config.epochs,
        steps_per_epoch=config.steps_per_epoch,
        seed=config.seed,
        temperature=config.temperature,
        size_cap=config.size_cap,
    )
    first = first_task(config, available or sizes) if first_epochs else 0
    # What is annealed is annealed over the epochs that are left to it.
    joint = replace(work, epochs=max(1, config.epochs - first_epochs))
    return Plan(work, SAMPLERS[config.sampling](joint), first, first_epochs)


def has_first_epochs(config: RunConfig) -> bool:
    """Whether one task has the first epochs to itself."""
    return config.sampling == "hybrid" or config.schedule == FIRST


def first_task(config: RunConfig, available: Sequence[int]) -> int:
    """Which task has the first epochs to itself: the one that is named, or the largest."""
    if config.first_task is not None:
        return config.tasks.index(config.first_task)
    largest = int(np.argmax(available))
    if list(available).count(available[largest]) > 1:
        name = "--sampling hybrid" if config.sampling == "hybrid" else f"--schedule {FIRST}"
        shown = zip(config.tasks, available, strict=True)
        raise RunError(
            f"{name}: expected one task larger than the others, found "
            f"{', '.join(f'{task} {size:,}' for task, size in shown)}; --first-task TASK decides"
        )
    return largest
