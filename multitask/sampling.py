"""Which task speaks next: the order of the tasks' batches in an epoch, and each task's examples.

A sampler gives, for epoch e (from 1), the task of every batch; the trainer takes them
`batches_per_step` at a time. All randomness is drawn from generators seeded by the run's seed and
the epoch or pass, so an epoch can be repeated without the ones before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

import numpy as np

from minbert.batching import bucketed_batches


def annealed_probabilities(sizes: Sequence[int], epoch: int, epochs: int) -> np.ndarray:
    """Chance of each task in an epoch: p_i proportional to N_i^a, a = 1 - 0.8 (e - 1) / (E - 1).

    From proportional sampling in the first epoch towards equal shares in the last (BEES, Eq. 5;
    Stickland and Murray, 2019). `sizes` are N in examples, `epoch` counts from 1; with one epoch
    in all, a = 1. Returns float64 (tasks,).
    """
    counts = np.asarray(sizes, np.float64)
    if counts.ndim != 1 or not len(counts) or not np.all(counts > 0):
        raise ValueError(f"sizes: expected positive numbers of examples, found {list(sizes)}")
    if not 1 <= epoch <= epochs:
        raise ValueError(f"epoch: expected 1 to {epochs}, found {epoch}")
    alpha = 1.0 if epochs == 1 else 1.0 - 0.8 * (epoch - 1) / (epochs - 1)
    weights = (counts / counts.max()) ** alpha
    return weights / weights.sum()


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """A generator of its own for each purpose, epoch or pass of a run."""
    return np.random.default_rng([seed, crc32(purpose.encode()), len(numbers), *numbers])


class Sampler(Protocol):
    """The order in which tasks' batches come."""

    def batches(self, epoch: int) -> np.ndarray:
        """Task index of every batch of this epoch (from 1), in order."""
        ...


@dataclass(frozen=True)
class Workload:
    """What a sampler may look at: examples of each task, batch size, and how long to go on.

    `steps_per_epoch` None leaves the length of an epoch to the sampler.
    """

    sizes: tuple[int, ...]
    batch_size: int
    batches_per_step: int
    epochs: int
    steps_per_epoch: int | None
    seed: int

    @property
    def batches_per_pass(self) -> tuple[int, ...]:
        """Batches of one pass over each task's examples, the last one perhaps short."""
        return tuple(-(-size // self.batch_size) for size in self.sizes)


@dataclass(frozen=True)
class RoundRobin:
    """One batch of each task in turn, for as long as the smallest task lasts (BEES, min-size).

    An epoch begins with the task whose turn it is, however many steps the last one had.
    """

    work: Workload

    def batches(self, epoch: int) -> np.ndarray:
        tasks = len(self.work.sizes)
        count = min(self.work.batches_per_pass) * tasks
        if self.work.steps_per_epoch is not None:
            count = self.work.steps_per_epoch * self.work.batches_per_step
        return np.arange((epoch - 1) * count, epoch * count) % tasks


@dataclass(frozen=True)
class Annealed:
    """Batches drawn at random with `annealed_probabilities` (BEES, Eq. 5).

    The paper leaves the length of an epoch open; by default it has as many batches as one pass
    over all tasks.
    """

    work: Workload

    def batches(self, epoch: int) -> np.ndarray:
        work = self.work
        steps = work.steps_per_epoch or -(-sum(work.batches_per_pass) // work.batches_per_step)
        chances = annealed_probabilities(work.sizes, epoch, work.epochs)
        drawn = generator(work.seed, "annealed", epoch)
        return drawn.choice(len(chances), size=steps * work.batches_per_step, p=chances)


SAMPLERS: dict[str, Callable[[Workload], Sampler]] = {
    "round-robin": RoundRobin,
    "annealed": Annealed,
}


class BatchStream:
    """One task's batches of row indices, pass after pass, each pass newly shuffled and bucketed.

    `position` = (pass, batches of it already taken) is all its state. The order depends on the
    seed and the task's name, not on the other tasks of the run.
    """

    def __init__(self, lengths: np.ndarray, batch_size: int, seed: int, task: str) -> None:
        self.lengths, self.batch_size, self.seed, self.task = lengths, batch_size, seed, task
        self.position = (0, 0)
        self._pass: tuple[int, list[np.ndarray]] = (-1, [])

    def next(self) -> np.ndarray:
        """Rows of the next batch."""
        number, taken = self.position
        if self._pass[0] != number:
            shuffle = generator(self.seed, f"batches of {self.task}", number)
            self._pass = (number, bucketed_batches(self.lengths, self.batch_size, shuffle))
        batches = self._pass[1]
        taken += 1
        self.position = (number, taken) if taken < len(batches) else (number + 1, 0)
        return batches[taken - 1]
