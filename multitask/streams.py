"""One task's batches, pass after pass over its examples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from minbert.batching import bucketed_batches
from multitask.config import RunConfig
from multitask.randomness import generator
from tasks.base import Task
from tasks.data import Split

Pass = Callable[[np.random.Generator], list[np.ndarray]]  # -> rows of its batches, in their order


def make_pass(config: RunConfig, task: Task, split: Split) -> Pass:
    """How a pass over a task's training examples is drawn."""
    if config.per_class and task.kind.classes is not None:
        assert split.examples.targets is not None
        return partial(class_batches, split.examples.targets, config.batch_size)
    return partial(bucketed_batches, split.lengths, config.batch_size)


def class_batches(
    targets: np.ndarray, batch_size: int, generator: np.random.Generator
) -> list[np.ndarray]:
    """Batches of as many examples of each class: a mini-batch a class (SCL-MOO, Algorithm 1).

    As many batches as a pass over all examples has. Each class goes through its examples in random
    order, a small one several times, and anew before all were seen in the present order.
    """
    classes = [np.flatnonzero(targets == label) for label in np.unique(targets)]
    each, count = max(1, batch_size // len(classes)), -(-len(targets) // batch_size)
    columns = []
    for rows in classes:
        rounds = -(-count * each // len(rows))
        order = np.concatenate([generator.permutation(rows) for _ in range(rounds)])
        columns.append(order[: count * each].reshape(count, each))
    return list(np.concatenate(columns, axis=1))


class BatchStream:
    """One task's batches of row indices, pass after pass, each pass newly drawn.

    `position` = (pass, batches of it already taken) is all its state. The order depends on the
    seed and the task's name, not on the other tasks of the run.
    """

    def __init__(self, make_pass: Pass, seed: int, task: str) -> None:
        self.make_pass, self.seed, self.task = make_pass, seed, task
        self.position = (0, 0)
        self._pass: tuple[int, list[np.ndarray]] = (-1, [])

    def next(self) -> np.ndarray:
        """Rows of the next batch."""
        number, taken = self.position
        if self._pass[0] != number:
            shuffle = generator(self.seed, f"batches of {self.task}", number)
            self._pass = (number, self.make_pass(shuffle))
        batches = self._pass[1]
        taken += 1
        self.position = (number, taken) if taken < len(batches) else (number + 1, 0)
        return batches[taken - 1]
