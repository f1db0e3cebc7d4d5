"""The endless sequence of one task's batches, in passes over its examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from common.errors import RunError, SettingsError
from common.random_generators import generator
from minbert.batching import bucketed_batches
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Split, Splits

Pass = Callable[[np.random.Generator], list[np.ndarray]]  # -> row indices of its batches, in order


def make_pass(config: RunConfig, task: Task, split: Split) -> Pass:
    """Return the function that draws a pass over a task's training examples."""
    if config.class_balanced and task.kind.classes is not None:
        least = task.kind.classes * (
            2 if task.compares_examples else 1
        )  # pull needs two of a class
        if config.batch_size < least:
            raise SettingsError(
                f"batch_size: expected {least} or more for the {task.kind.classes} classes of "
                f"{task.name} in class-balanced batches, found {config.batch_size}"
            )
        assert split.examples.targets is not None
        counts = np.bincount(split.examples.targets)
        objective = config.pretraining_objective
        two_of_each = objective is not None and objective.two_of_each_class
        pairs = 2 if two_of_each else 1  # classes that need two examples
        if task.compares_examples and ((counts > 0).sum() < 2 or (counts > 1).sum() < pairs):
            raise RunError(
                f"{task.name}: expected training examples of two classes or more, and two "
                f"examples of {'each' if pairs == 2 else 'one'}, "
                f"found {', '.join(map(str, counts))} per class"
            )
        return partial(class_batches, split.examples.targets, config.batch_size)
    return partial(bucketed_batches, split.lengths, config.batch_size)


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


def make_streams(config: RunConfig, tasks: Mapping[str, Task], splits: Splits) -> list[BatchStream]:
    """Return the stream of each task's training examples."""
    found = []
    for name, task in tasks.items():
        one_pass = make_pass(config, task, splits[name]["train"])
        found.append(BatchStream(one_pass, config.seed, name))
    return found


def next_batches(streams: Sequence[BatchStream], drawn: np.ndarray) -> dict[str, list[np.ndarray]]:
    """Return the rows of the next batches of the tasks `drawn`, given as indices into `streams`."""
    return {
        streams[task].task: [streams[task].next() for _ in range(int((drawn == task).sum()))]
        for task in np.unique(drawn)
    }
