"""How the sampled batches become optimiser steps: joint, individual, first one task, then joint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from multitask.config import RunConfig
from multitask.sampling import SAMPLERS, Sampler, Workload

SCHEDULES = ("joint", "individual", "first-then-joint")


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


def build_plan(config: RunConfig, sizes: Sequence[int]) -> Plan:
    """The plan of a configuration for tasks of `sizes` training examples.

    Joint: all tasks drawn for a step move it together. Individual: every batch is a step of its
    own (Liu et al., 2019). First-then-joint: BEES' max-data-task-first and complex-task-first. The
    hybrid sampler is the largest task first, then round-robin (BEES, section 4.5.1).
    """
    first_epochs = config.first_epochs if config.has_first_epochs else 0
    work = Workload(
        sizes=tuple(sizes),
        batch_size=config.batch_size,
        batches_per_step=1 if config.schedule == "individual" else config.batches_per_step,
        epochs=config.epochs,
        steps_per_epoch=config.steps_per_epoch,
        seed=config.seed,
        temperature=config.temperature,
        size_cap=config.size_cap,
    )
    first = int(np.argmax(sizes))
    if config.schedule == "first-then-joint" and config.first_task is not None:
        first = config.tasks.index(config.first_task)
    # What is annealed is annealed over the epochs that are left to it.
    joint = replace(work, epochs=max(1, config.epochs - first_epochs))
    return Plan(work, SAMPLERS[config.sampling](joint), first, first_epochs)
