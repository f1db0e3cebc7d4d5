"""The progress of a run: its counts and scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from multitask.sampling import EpochFigures
from multitask.settings.config import RunConfig
from tasks import task_and_term
from tasks.metrics import mean_score


@dataclass
class Progress:
    """Counts and scores of a run, part of the trainer's `state_dict`."""

    epoch: int = 0  # finished epochs
    taken: int = 0  # steps of the next epoch
    step: int = 0
    seconds: float = 0.0  # of training, without evaluation
    examples: int = 0
    best_score: float = float("-inf")
    best_epoch: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)  # dev metrics after an epoch
    # Of each epoch, by task: sum of the losses of its batches, and their number.
    losses: list[dict[str, list[float]]] = field(default_factory=list)
    stopped: bool = False  # by a callback
    # Pre-training: dev metrics before the first step.
    before: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def scored(self) -> bool:
        """Whether the last finished epoch has its dev score."""
        return bool(self.history) and self.history[-1]["epoch"] == self.epoch

    def add_losses(self, losses: Mapping[str, float], batches: Mapping[str, int]) -> None:
        """Add the losses of a step by objective, from the numbers of its batches by task."""
        while len(self.losses) <= self.epoch:
            self.losses.append({})
        for task, count in batches.items():
            total, number = self.losses[-1].get(task, (0.0, 0))
            own = [loss for name, loss in losses.items() if task_and_term(name)[0] == task]
            self.losses[-1][task] = [total + sum(own), number + count]

    def figures(self, tasks: Mapping[str, str]) -> list[EpochFigures]:
        """Return what the finished epochs have shown of `tasks`, whose main metrics are given."""
        dev = {one["epoch"]: one["dev"] for one in self.history}
        found = []
        for epoch, losses in enumerate(self.losses[: self.epoch], 1):
            sums = [losses.get(task, (np.nan, 1)) for task in tasks]
            scores = [
                mean_score({task: dev[epoch][task][metric]}, {task: metric})
                if metric in dev.get(epoch, {}).get(task, {})
                else np.nan
                for task, metric in tasks.items()
            ]
            means = [total / number for total, number in sums]
            found.append(EpochFigures(np.array(means), np.array(scores)))
        return found

    def add_score(self, score: float, dev: Mapping[str, Any], keep_last: bool) -> bool:
        """Add the dev score of the epoch; return whether to keep its weights."""
        self.history.append(
            {"epoch": self.epoch, "step": self.step, "selection_score": score, "dev": dict(dev)}
        )
        better = score > self.best_score or keep_last
        if better:
            self.best_score, self.best_epoch = score, self.epoch
        return better

    def due(self, config: RunConfig) -> bool:
        """Return whether an evaluation is due before the next epoch."""
        last = self.epoch >= config.epochs
        at_this_one = self.epoch > 0 and (self.epoch % config.evaluate_every == 0 or last)
        return at_this_one and not self.scored

    def finished(self, config: RunConfig) -> bool:
        """Return whether training ended: by a callback, the last epoch or the patience."""
        patience = config.patience or config.epochs
        scores = [one["selection_score"] for one in self.history]
        best = self.history[scores.index(max(scores))]["epoch"] if scores else 0
        ended = self.stopped or self.epoch >= config.epochs or self.epoch - best >= patience
        return ended and self.scored
