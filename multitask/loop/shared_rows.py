"""Tasks of one table in a step: rows that several tasks have labels for are encoded once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from multitask.model import EncoderWithHeads
from multitask.settings.config import RunConfig
from tasks.base import Task
from tasks.data import Split, Splits

Batches = Mapping[str, Sequence[np.ndarray]]  # task -> rows of its batches in a step


def with_shared_passes(
    config: RunConfig,
    model: EncoderWithHeads,
    tasks: Mapping[str, Task],
    splits: Splits,
    regularized: Collection[str],
) -> dict[str, dict[str, Split]]:
    """Return splits whose training rows are shared only where one encoder pass serves all tasks.

    This needs steps with the same number of batches of each task. The tasks of a table have passes
    of their own if one of them has a branch, a head that pools tokens, a loss that compares
    examples, a regulariser, or batches that depend on its labels.
    """
    in_turn = config.sampling.in_turn and not config.schedule.one_batch and config.first() is None
    together = in_turn and config.step_batches % len(tasks) == 0 and not config.class_balanced

    def has_own_pass(name: str) -> bool:
        return name in regularized or tasks[name].compares_examples or not model.embeds_alike(name)

    def is_shared(name: str) -> bool:
        shared = splits[name]["train"].shared
        return together and shared is not None and not any(map(has_own_pass, shared.tasks))

    return {
        name: {
            split: one if split != "train" or is_shared(name) else one.separate
            for split, one in several.items()
        }
        for name, several in splits.items()
    }


@dataclass(frozen=True)
class Unit:
    """Tasks of a step with the same batches, given as rows, which one encoder pass embeds."""

    tasks: tuple[str, ...]
    batches: Sequence[np.ndarray]

    def joined(self, task: str) -> Unit:
        return replace(self, tasks=(*self.tasks, task))


def units_of(splits: Splits, batches: Batches) -> list[Unit]:
    """Return the units of a step: the tasks of one table with the same rows, or a single task.

    A task without a label in its rows has no loss in this step, and is left out.
    """
    found: dict[object, Unit] = {}
    for name, several in batches.items():
        shared = splits[name]["train"].shared
        if shared is not None and not labelled(splits[name]["train"], several):
            continue
        rows = tuple(one.tobytes() for one in several)
        key = name if shared is None else (shared.tasks, rows)
        found[key] = found[key].joined(name) if key in found else Unit((name,), several)
    return list(found.values())


def labelled(split: Split, batches: Sequence[np.ndarray]) -> int:
    """Return the number of rows in batches that have a label of the task."""
    return sum(int((split.examples_in(rows) >= 0).sum()) for rows in batches)
