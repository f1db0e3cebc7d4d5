"""The estimate of a run's time, from its first seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.progress import duration
from multitask.sampling import Plan
from multitask.settings.config import RunConfig

if TYPE_CHECKING:
    from multitask.storage.checkpoint import Progress
    from tasks.data import Splits

AFTER = 5.0  # seconds of training before the estimate
AT_LEAST = 3  # steps of them
FORWARD = 1 / 3  # time of an example in evaluation, as a share of its time in training


def time_left(plan: Plan, config: RunConfig, splits: Splits, progress: Progress) -> TimeLeft:
    """Return the estimate for the rest of a run, with its evaluations and predictions."""
    epochs = [plan.steps(epoch + 1) for epoch in range(progress.epoch, config.epochs)]
    batches = sum(len(step) for steps in epochs for step in steps)
    batches -= sum(len(step) for steps in epochs[:1] for step in steps[: progress.taken])
    dev, test = (
        sum(len(one[split].examples) for one in splits.values() if split in one)
        for split in ("dev", "test")
    )
    evaluations = -(-len(epochs) // config.evaluate_every)
    return TimeLeft(batches * config.batch_size, evaluations * dev + test)


class TimeLeft:
    """Estimate of the time to the end of a run, made once, after its first seconds.

    `examples` and `scored` are the examples left to train on and to score on dev and test. The
    first step, which warms up, is not measured.
    """

    def __init__(self, examples: int, scored: int) -> None:
        self.left, self.scored = examples, scored
        self.begin: float | None = None
        self.measured = self.steps = 0

    def after(self, examples: int, trained: float) -> str | None:
        """Count a step with so many examples; return the estimate when it is due, else None.

        `trained` is the time of all steps so far, in seconds.
        """
        self.left -= examples
        if self.begin is None:
            self.begin = trained
            return None
        self.measured, self.steps = self.measured + examples, self.steps + 1
        elapsed = trained - self.begin
        if elapsed < AFTER or self.steps < AT_LEAST or self.left <= 0:
            return None
        self.begin = float("inf")  # only once
        seconds = (self.left + FORWARD * self.scored) * elapsed / self.measured
        return (
            f"about {duration(seconds)} left for {self.left:,} examples of training and "
            f"{self.scored:,} of evaluation, at the speed of the first {elapsed:.0f} s"
        )
