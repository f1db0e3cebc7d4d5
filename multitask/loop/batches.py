"""The batches of a run: the tasks of every step, and the rows of each task's next batch."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from common.errors import RunError, SettingsError
from minbert.batching import bucketed_batches
from multitask.sampling import BeginsWithOneTask, History, Workload, generator
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Split

Pass = Callable[[np.random.Generator], list[np.ndarray]]  # -> row indices of its batches, in order


class Plan:
    """The tasks of every step of a run, for tasks with `sizes` training examples.

    The first `first_epochs` epochs train only the task `first_task_index`, one batch per step. Then
    each step takes `work.batches_per_step` of the sampler's batches. `work` describes the whole
    run; the sampler sees only the epochs after the first ones, for example for annealing.
    `available` are the sizes before any limit, which determine the largest task; None means
    `sizes`.
    """

    def __init__(
        self, config: RunConfig, sizes: Sequence[int], available: Sequence[int] | None = None
    ) -> None:
        self.work = Workload(
            sizes=tuple(sizes),
            batch_size=config.batch_size,
            batches_per_step=config.step_batches,
            epochs=config.epochs,
            steps_per_epoch=config.steps_per_epoch,
            seed=config.seed,
        )
        self.sampler, self.first_task_index, self.first_epochs = config.sampling, 0, 0
        for one in (config.schedule, config.sampling):
            if isinstance(one, BeginsWithOneTask):
                first = [*config.tasks].index(one.first_task) if one.first_task else None
                largest = int(np.argmax(available or sizes))
                self.first_task_index = largest if first is None else first
                self.first_epochs = one.first_epochs or min(1, config.epochs - 1)

    def steps(self, epoch: int, history: History = ()) -> list[np.ndarray]:
        """Return the task indices of the batches of each step of an epoch (from 1)."""
        work, size = self.work, self.work.batches_per_step
        if epoch <= self.first_epochs:
            count = work.steps_per_epoch or work.batches_per_pass[self.first_task_index]
            batches, size = np.full(count, self.first_task_index), 1
        else:
            left = replace(work, epochs=max(1, work.epochs - self.first_epochs), history=history)
            batches = np.asarray(self.sampler.batches(left, epoch - self.first_epochs))
        return [batches[i : i + size] for i in range(0, len(batches), size)]


def make_pass(config: RunConfig, task: Task, split: Split) -> Pass:
    """Return the function that draws a pass over a task's training examples.

    Raise SettingsError or RunError if class-balanced batches would have nothing to compare.
    """
    if not config.class_balanced or task.kind.classes is None:
        return partial(bucketed_batches, split.lengths, config.batch_size)
    assert split.examples.targets is not None
    least = task.kind.classes * (2 if task.compares_examples else 1)  # pull needs two of a class
    if config.batch_size < least:
        line = f"expected {least} or more for the {task.kind.classes} classes of {task.name}"
        raise SettingsError(f"batch_size: {line}, found {config.batch_size}")
    counts = np.bincount(split.examples.targets)
    if task.compares_examples and ((counts > 0).sum() < 2 or counts.max() < 2):
        line = "expected examples of two classes or more, and two examples of one"
        raise RunError(f"{task.name}: {line}, found {', '.join(map(str, counts))} per class")
    return partial(class_batches, split.examples.targets, config.batch_size)


def class_batches(
    targets: np.ndarray, batch_size: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Return class-balanced batches: one mini-batch per class (SCL-MOO, Algorithm 1).

    There are as many batches as in a pass over all examples. A class that is smaller than its share
    is in each batch as a whole. No example occurs twice in a batch.
    """
    classes = [np.flatnonzero(targets == label) for label in np.unique(targets)]
    each, count = max(1, batch_size // len(classes)), -(-len(targets) // batch_size)
    columns = [balanced_samples(rows, min(each, len(rows)), count, generator) for rows in classes]
    return [np.concatenate(parts) for parts in zip(*columns, strict=True)]


def balanced_samples(
    rows: np.ndarray, size: int, count: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Draw `count` samples of `size` distinct rows; row counts differ by at most one."""
    found, ahead = [], rows[:0]
    for _ in range(count):
        part, ahead = ahead[:size], ahead[size:]
        if len(part) < size:
            again = generator.permutation(rows)
            late = np.isin(again, part)  # rows that this batch already has move to the end
            again = np.concatenate([again[~late], again[late]])
            missing = size - len(part)
            part, ahead = np.concatenate([part, again[:missing]]), again[missing:]
        found.append(part)
    return found


class BatchStream:
    """The batches of one task as row indices; each pass over the examples is drawn anew.

    The whole state is `position` = (pass, batches already taken from it). The order depends on the
    random seed and the name of the task, but not on the other tasks of the run.
    """

    def __init__(self, make_pass: Pass, seed: int, task: str) -> None:
        self.make_pass, self.seed, self.task = make_pass, seed, task
        self.position = (0, 0)
        self._pass: tuple[int, list[np.ndarray]] = (-1, [])

    def next(self) -> np.ndarray:
        """Return the rows of the next batch."""
        number, taken = self.position
        if self._pass[0] != number:
            shuffle = generator(self.seed, f"batches of {self.task}", number)
            self._pass = (number, self.make_pass(shuffle))
        batches = self._pass[1]
        taken += 1
        self.position = (number, taken) if taken < len(batches) else (number + 1, 0)
        return batches[taken - 1]


def next_batches(streams: Sequence[BatchStream], drawn: np.ndarray) -> dict[str, list[np.ndarray]]:
    """Return the rows of the next batches of the tasks `drawn`, given as indices into `streams`."""
    return {
        streams[task].task: [streams[task].next() for _ in range(int((drawn == task).sum()))]
        for task in np.unique(drawn)
    }
