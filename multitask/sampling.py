"""Which task speaks next: the order of the tasks' batches in an epoch.

A sampler gives, for epoch e (from 1), the task of every batch; the schedule groups them into steps.
All randomness is drawn from generators seeded by the run's seed and the epoch, so an epoch can be
repeated without the ones before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from multitask.randomness import generator


def power_probabilities(
    sizes: Sequence[float], alpha: float, cap: float | None = None
) -> np.ndarray:
    """Chance of each task: p_i proportional to min(N_i, cap)^alpha, N in examples; float64.

    alpha = 1 is proportional sampling, 1/2 the square root, 0 equal shares, 1/T temperature T; a
    cap keeps one huge task from drowning the others (Raffel et al., 2020, section 3.5.2).
    """
    counts = np.asarray(sizes, np.float64)
    if counts.ndim != 1 or not len(counts) or not np.all(counts > 0):
        raise ValueError(f"sizes: expected positive numbers of examples, found {list(sizes)}")
    if cap is not None:
        counts = np.minimum(counts, cap)
    weights = (counts / counts.max()) ** alpha
    return weights / weights.sum()


def annealed_probabilities(sizes: Sequence[int], epoch: int, epochs: int) -> np.ndarray:
    """Chance of each task in an epoch: p_i proportional to N_i^a, a = 1 - 0.8 (e - 1) / (E - 1).

    From proportional sampling in the first epoch towards equal shares in the last (BEES, Eq. 5;
    Stickland and Murray, 2019). `sizes` are N in examples, `epoch` counts from 1; with one epoch
    in all, a = 1. Returns float64 (tasks,).
    """
    if not 1 <= epoch <= epochs:
        raise ValueError(f"epoch: expected 1 to {epochs}, found {epoch}")
    alpha = 1.0 if epochs == 1 else 1.0 - 0.8 * (epoch - 1) / (epochs - 1)
    return power_probabilities(sizes, alpha)


class Sampler(Protocol):
    """The order in which tasks' batches come."""

    def batches(self, epoch: int) -> np.ndarray:
        """Task index of every batch of this epoch (from 1), in order."""
        ...


@dataclass(frozen=True)
class Workload:
    """What a sampler may look at: examples of each task, batch size, and how long to go on.

    `steps_per_epoch` None leaves the length of an epoch to the sampler; `temperature` and
    `size_cap` (in examples) belong to the sampler of that name.
    """

    sizes: tuple[int, ...]
    batch_size: int
    batches_per_step: int
    epochs: int
    steps_per_epoch: int | None
    seed: int
    temperature: float = 5.0
    size_cap: int | None = None

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
class Drawn:
    """Batches drawn at random, each task with its `chances(epoch)`.

    The papers leave the length of such an epoch open; by default it has as many batches as one
    pass over all tasks.
    """

    work: Workload
    purpose: str
    chances: Callable[[int], np.ndarray]

    def batches(self, epoch: int) -> np.ndarray:
        work = self.work
        steps = work.steps_per_epoch or -(-sum(work.batches_per_pass) // work.batches_per_step)
        chances = self.chances(epoch)
        drawn = generator(work.seed, self.purpose, epoch)
        return drawn.choice(len(chances), size=steps * work.batches_per_step, p=chances)


def annealed(work: Workload) -> Sampler:
    """BEES, Eq. 5."""
    return Drawn(
        work, "annealed", lambda epoch: annealed_probabilities(work.sizes, epoch, work.epochs)
    )


def power(name: str, alpha: float) -> Callable[[Workload], Sampler]:
    """A sampler whose chances are `power_probabilities` in every epoch."""
    return lambda work: Drawn(work, name, lambda epoch: power_probabilities(work.sizes, alpha))


def temperature(work: Workload) -> Sampler:
    """p_i proportional to min(N_i, cap)^(1/T) (Raffel et al., 2020)."""
    chances = power_probabilities(work.sizes, 1 / work.temperature, work.size_cap)
    return Drawn(work, "temperature", lambda epoch: chances)


SAMPLERS: dict[str, Callable[[Workload], Sampler]] = {
    "round-robin": RoundRobin,
    "hybrid": RoundRobin,  # after epochs of the largest task alone: see multitask/schedule.py
    "annealed": annealed,
    "proportional": power("proportional", 1.0),
    "square-root": power("square-root", 0.5),
    "temperature": temperature,
    "uniform": power("uniform", 0.0),
}
