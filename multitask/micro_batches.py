"""Which examples of a step go through encoder and losses together, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from multitask.distributed import Processes
from tasks.base import Task


@dataclass(frozen=True)
class Part:
    """Examples `indices` whose losses are computed together, their `share` of the step's.

    `pieces` are this process' examples among them, by the pass of the encoder they go through.
    """

    pieces: tuple[np.ndarray, ...]
    indices: np.ndarray
    share: float


def parts_of(
    task: Task, batches: Sequence[np.ndarray], processes: Processes, micro_batch: int | None
) -> Iterator[Part]:
    """The parts of a task's batches in a step, at most `micro_batch` examples to a piece.

    Each piece by itself, but a whole batch where the losses compare its examples.
    """
    total = sum(len(indices) for indices in batches)
    for indices in batches:
        if task.in_batch:
            yield whole_part(task, indices, processes, micro_batch, len(indices) / total)
        else:
            for piece in pieces_of(indices, processes, micro_batch):
                yield Part((piece,), piece, len(piece) / total)


def whole_part(
    task: Task,
    indices: np.ndarray,
    processes: Processes,
    micro_batch: int | None,
    share: float = 1.0,
) -> Part:
    """A batch in one part, which in a loss over it holds the other processes' examples too."""
    pieces = tuple(pieces_of(indices, processes, micro_batch))
    if task.in_batch:
        return Part(pieces, indices, share)
    mine = processes.share(indices)
    return Part(pieces, mine, share * len(mine) / len(indices))


def pieces_of(
    indices: np.ndarray, processes: Processes, micro_batch: int | None
) -> Iterator[np.ndarray]:
    """This process' share of a batch, at most `micro_batch` examples at a time."""
    mine = processes.share(indices)
    size = micro_batch or max(1, len(mine))
    for begin in range(0, len(mine), size):
        yield mine[begin : begin + size]
