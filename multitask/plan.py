"""The plan of a run: the tasks of the batches of every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from common.errors import RunError, SettingsError
from common.settings import short
from multitask.sampling import History, Sampler, Workload
from multitask.settings.config import RunConfig


@dataclass(frozen=True)
class Plan:
    """The tasks of every step of a run.

    The first `first_epochs` epochs train only the task `first_task_index`, one batch per step. Then
    each step takes `work.batches_per_step` of the sampler's batches. `work` describes the whole
    run; the sampler sees only the epochs after the first ones, for example for annealing.
    """

    work: Workload
    sampler: Sampler
    first_task_index: int = 0
    first_epochs: int = 0

    def steps(self, epoch: int, history: History = ()) -> list[np.ndarray]:
        """Return the task indices of the batches of each step of an epoch (from 1).

        `history` has what the epochs so far have shown; the number of steps does not depend on it.
        """
        size = self.work.batches_per_step
        if epoch <= self.first_epochs:
            count = self.work.steps_per_epoch or self.work.batches_per_pass[self.first_task_index]
            batches, size = np.full(count, self.first_task_index), 1
        else:
            left = replace(self.work, epochs=max(1, self.work.epochs - self.first_epochs))
            drawn = self.sampler.batches(left, epoch - self.first_epochs, history)
            batches = self.checked(drawn)
        return [batches[i : i + size] for i in range(0, len(batches), size)]

    def checked(self, batches: Any) -> np.ndarray:
        """Return what the sampler found; raise RunError for anything but indices of tasks."""
        found, tasks = np.asarray(batches), len(self.work.sizes)
        whole = found.ndim == 1 and len(found) and np.issubdtype(found.dtype, np.integer)
        if not whole or found.min() < 0 or found.max() >= tasks:
            expected = f"expected batches as whole numbers from 0 to {tasks - 1}"
            raise RunError(f"sampler {self.sampler.name}: {expected}, found {short(batches)}")
        return found


def build_plan(
    config: RunConfig, sizes: Sequence[int], available: Sequence[int] | None = None
) -> Plan:
    """Return the plan of a configuration for tasks with `sizes` training examples.

    `available` are the sizes before any limit, which determine the largest task; None means
    `sizes`. Raise SettingsError if two tasks are the largest and the first task is not named.
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
    return Plan(
        work, config.sampling, index_of_first_task(config, available or sizes), first.epochs or 0
    )


def batches_by_task(steps: Sequence[np.ndarray], tasks: int) -> np.ndarray:
    """Return how many batches of each task steps take: (tasks,) int64."""
    return np.bincount(np.concatenate(steps), minlength=tasks)


def index_of_first_task(config: RunConfig, available: Sequence[int]) -> int:
    """Return the index of the task of the first epochs: the named one, or the largest."""
    first = config.first()
    if first is not None and first.task is not None:
        return [*config.tasks].index(first.task)
    largest = int(np.argmax(available))
    if list(available).count(available[largest]) > 1:
        shown = zip(config.tasks, available, strict=True)
        raise SettingsError(
            "first_task: name the task of the first epochs, since several are the largest: "
            f"{', '.join(f'{task} {size:,}' for task, size in shown)}"
        )
    return largest
