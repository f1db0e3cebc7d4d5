"""One task's batches, pass after pass over its examples."""

from __future__ import annotations

import numpy as np

from minbert.batching import bucketed_batches
from multitask.randomness import generator


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
