"""One optimiser step: the next batches of the tasks drawn -> gradient -> clipped -> the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from multitask.combiners import Combined
from multitask.config import RunConfig
from multitask.errors import NotFiniteError, RunError
from multitask.optimizer import set_learning_rate
from multitask.probing import stage
from multitask.progress import Progress
from multitask.regularizers.base import Running
from multitask.step import StepGradient
from multitask.step_result import Batches, StepResult, check_finite, examples_of
from multitask.streams import BatchStream
from multitask.telemetry import MEASURE_EVERY, Telemetry, count_conflicts

SKIPPED = "left out: not finite"  # status of a step


class OptimizerStep:
    """Takes steps of a run, counts them in its progress and tells its telemetry of each.

    `streams` are the tasks' batches in the run's order; `lengths` the number of probing steps and
    of all steps, over which the learning rate rises and falls.
    """

    def __init__(
        self,
        gradient: StepGradient,
        optimizer: torch.optim.Optimizer,
        streams: Sequence[BatchStream],
        regularizers: Mapping[str, Running],
        config: RunConfig,
        lengths: tuple[int, int],
        telemetry: Telemetry,
    ) -> None:
        self.gradient, self.optimizer, self.streams = gradient, optimizer, streams
        self.model, self.regularizers = gradient.model, regularizers
        self.config, self.lengths, self.telemetry = config, lengths, telemetry
        self.why_skipped = ""  # of the last step that was left out

    def __call__(self, drawn: np.ndarray, progress: Progress) -> StepResult:
        """A step on the next batches of the tasks `drawn`, by their places in the run's order.

        One whose loss or gradient is not finite is left out. Raises RunError where the weights are
        no longer finite.
        """
        batches = self.draw(drawn)
        number = progress.step
        factor = self.config.lr_schedule.factor(*stage(number, *self.lengths))
        set_learning_rate(self.optimizer, factor)
        progress.step += 1
        try:
            result = self.gradient(batches, number % MEASURE_EVERY == 0, number)
            norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip))
            check_finite("gradient", [norm], ["this step"])
        except NotFiniteError as error:
            return self.skip(error, batches, progress)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for regularizer in self.regularizers.values():
            regularizer.after_step(self.model)
        progress.skipped = 0
        self.note(result, {"gradient_norm": norm, "learning_rate_factor": factor}, progress)
        return result

    def draw(self, drawn: np.ndarray) -> dict[str, list[np.ndarray]]:
        """Rows of the next batches of each task, the tasks in the run's order."""
        return {
            self.streams[task].task: [
                self.streams[task].next() for _ in range(int((drawn == task).sum()))
            ]
            for task in np.unique(drawn)
        }

    def skip(self, error: NotFiniteError, batches: Batches, progress: Progress) -> StepResult:
        """Leave the step out."""
        self.optimizer.zero_grad(set_to_none=True)
        progress.skipped += 1
        self.why_skipped = f"step {progress.step}: {error}"
        print(f"left out {self.why_skipped}", flush=True)
        if not finite(self.model):
            raise RunError(f"the weights are no longer finite; {self.why_skipped}")
        nothing = Combined(np.zeros(0), SKIPPED)
        result = StepResult((), np.zeros(0), nothing, {}, examples_of(batches))
        self.note(result, {}, progress)
        return result

    def note(self, result: StepResult, figures: Mapping[str, float], progress: Progress) -> None:
        """Count what the step did and tell it, with its further `figures`."""
        status = result.combined.status
        progress.examples += result.examples
        progress.statuses[status] = progress.statuses.get(status, 0) + 1
        count_conflicts(progress.conflicts, result)
        self.telemetry.step(progress.step, result, figures)


def finite(model: nn.Module) -> bool:
    """Whether every weight is a number."""
    return all(bool(p.isfinite().all()) for p in model.parameters())
