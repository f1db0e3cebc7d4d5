"""Samplers order the tasks' batches of an epoch; schedules group these batches into steps.

Random generators are seeded by the run's random seed and the epoch, so that an epoch can be
repeated without the previous ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from common.errors import UserError
from common.settings import AtLeastOne, Count, Name, Settings, setting

History = Sequence[Mapping[str, Any]]  # as in metrics.json


def generator(seed: int, purpose: str, *numbers: int) -> np.random.Generator:
    """Return an independent generator for a purpose and its numbers, such as epoch or pass."""
    return np.random.default_rng([seed, crc32(purpose.encode()), len(numbers), *numbers])


def power_probabilities(sizes: Sequence[float], alpha: float) -> np.ndarray:
    """Return the probability of each task, proportional to N_i^alpha; float64 (tasks,).

    `sizes` are N in examples. alpha = 1 is proportional sampling, 1/2 the square root, 0 uniform,
    1/T temperature T.
    """
    counts = np.asarray(sizes, np.float64)
    if not (counts > 0).all():
        raise ValueError(f"sizes: expected positive numbers of examples, found {list(sizes)}")
    weights = (counts / counts.max()) ** alpha
    return weights / weights.sum()


def annealed_probabilities(sizes: Sequence[int], epoch: int, epochs: int) -> np.ndarray:
    """Return the probability of each task, proportional to N_i^a; a = 1 - 0.8 (e - 1) / (E - 1).

    Sampling is proportional in the first epoch and closest to uniform in the last (BEES, Eq. 5;
    Stickland and Murray, 2019). `sizes` are N in examples, and `epoch` e counts from 1. With E = 1
    epoch in total, a = 1. The result is float64 (tasks,).

    Raises:
        ValueError: for an epoch that is not from 1 to `epochs`, or sizes that are not above 0.
    """
    if not 1 <= epoch <= epochs:
        raise ValueError(f"epoch: expected 1 to {epochs}, found {epoch}")
    alpha = 1.0 if epochs == 1 else 1.0 - 0.8 * (epoch - 1) / (epochs - 1)
    return power_probabilities(sizes, alpha)


@dataclass(frozen=True)
class Workload:
    """The inputs of a sampler: examples of each task, batch size, and length of the training.

    If `steps_per_epoch` is None, the sampler chooses the length of an epoch, which must not depend
    on `history`, the dev metrics after the epochs so far.
    """

    sizes: tuple[int, ...]
    batch_size: int
    batches_per_step: int
    epochs: int
    steps_per_epoch: int | None
    seed: int
    history: History = ()

    @property
    def batches_per_pass(self) -> tuple[int, ...]:
        """Number of batches of one pass over each task; the last batch may be smaller."""
        return tuple(-(-size // self.batch_size) for size in self.sizes)


class Sampler(Settings):
    """A method that orders the batches of the tasks.

    A random sampler has `alpha`, if its probabilities are proportional to N^alpha, or overrides
    `probabilities`; any other one overrides `batches`.
    """

    alpha: ClassVar[float | None] = None

    def probabilities(self, work: Workload, epoch: int) -> np.ndarray:
        """Return the probability of each task in an epoch (from 1): float64 (tasks,) with sum 1."""
        if self.alpha is None:
            line = "the class needs a method probabilities or batches"
            raise UserError(f"sampler {self.name}: {line}")
        return power_probabilities(work.sizes, self.alpha)

    def batches(self, work: Workload, epoch: int) -> np.ndarray:
        """Return the task index of every batch of an epoch (from 1), in order.

        The papers do not define the length of an epoch with random sampling. By default it has as
        many batches as one pass over all tasks, rounded up to whole steps.
        """
        steps = work.steps_per_epoch or -(-sum(work.batches_per_pass) // work.batches_per_step)
        drawn = generator(work.seed, self.name, epoch)
        size = steps * work.batches_per_step
        return drawn.choice(len(work.sizes), size=size, p=self.probabilities(work, epoch))


class RoundRobin(Sampler, name="round-robin"):
    """One batch of each task in turn, until the smallest task is exhausted (BEES, min-size).

    An epoch continues the order of the previous one, whatever its number of steps.
    """

    def batches(self, work: Workload, epoch: int) -> np.ndarray:
        tasks = len(work.sizes)
        count = min(work.batches_per_pass) * tasks
        if work.steps_per_epoch is not None:
            count = work.steps_per_epoch * work.batches_per_step
        return np.arange((epoch - 1) * count, epoch * count) % tasks


class BeginsWithOneTask(Settings):
    """The settings of a sampler or schedule whose first epochs train one task."""

    first_task: Name | None = setting(
        None,
        help="task of the first epochs (default: the task with the most examples before any limit)",
        metavar="TASK",
    )
    first_epochs: Count | None = setting(
        None, help="number of epochs that train only the first task (default: 1 of several epochs)"
    )


class Hybrid(BeginsWithOneTask, RoundRobin, name="hybrid"):
    """First epochs with only the largest task, then round-robin (BEES, section 4.5.1)."""


class Annealed(Sampler, name="annealed"):
    """Annealed from proportional to nearly uniform sampling over the epochs (BEES, Eq. 5)."""

    def probabilities(self, work: Workload, epoch: int) -> np.ndarray:
        return annealed_probabilities(work.sizes, epoch, work.epochs)


class Proportional(Sampler, name="proportional"):
    """Probabilities proportional to the number of examples."""

    alpha = 1.0


class SquareRoot(Sampler, name="square-root"):
    """Probabilities proportional to the square root of the number of examples."""

    alpha = 0.5


class Temperature(Sampler, name="temperature"):
    """Probabilities proportional to size^(1/T) (Raffel et al., 2020)."""

    temperature: AtLeastOne = setting(
        5.0, help="T of size^(1/T)", source="Arivazhagan et al., 2019", metavar="T"
    )

    def probabilities(self, work: Workload, epoch: int) -> np.ndarray:
        return power_probabilities(work.sizes, 1 / self.temperature)


class Uniform(Sampler, name="uniform"):
    """Equal probabilities, whatever the sizes."""

    alpha = 0.0


class Schedule(Settings):
    """The grouping of batches into steps; with `one_batch` every batch is a separate step."""

    one_batch: ClassVar[bool] = False


class Joint(Schedule, name="joint"):
    """All tasks drawn for a step update the encoder together."""


class Individual(Schedule, name="individual"):
    """Every batch is a separate step (Liu et al., 2019)."""

    one_batch = True


class FirstThenJoint(BeginsWithOneTask, Schedule, name="first-then-joint"):
    """First epochs with one task, then joint (BEES, max-data-task-first, complex-task-first)."""
