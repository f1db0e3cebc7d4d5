"""Running means of a model's weights: the model that is scored, or a teacher of the one trained."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from multitask.model import EncoderWithHeads

NAME = "averaged weights"  # in checkpoints; no regulariser can have a name with a space


class Follower(Protocol):
    """A part of a run that is updated after each optimiser step, with tensors in checkpoints."""

    def after_step(self, model: EncoderWithHeads) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class RunningMean:
    """A copy of a model, in evaluation mode, whose weights follow those of the model."""

    def __init__(self, model: EncoderWithHeads) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False).eval()

    @torch.no_grad()
    def update(self, model: EncoderWithHeads, momentum: float) -> None:
        """Set mean <- momentum x mean + (1 - momentum) x model; buffers are copied."""
        pairs = zip(self.model.parameters(), model.parameters(), strict=True)
        means, weights = zip(*pairs, strict=True)
        torch._foreach_lerp_(list(means), list(weights), 1 - momentum)
        for buffer, now in zip(self.model.buffers(), model.buffers(), strict=True):
            buffer.copy_(now)


class AveragedWeights:
    """The exponential moving average of encoder and heads over the steps of a run.

    After step t, from 1, the momentum is min(momentum, (1 + t) / (10 + t)), as in TensorFlow's
    `ExponentialMovingAverage`: the first averages are short, so that the weights before training
    soon lose their influence. The trained model does not depend on the average.
    """

    def __init__(self, model: EncoderWithHeads, momentum: float) -> None:
        self.mean, self.momentum, self.steps = RunningMean(model), momentum, 0

    def after_step(self, model: EncoderWithHeads) -> None:
        self.steps += 1
        self.mean.update(model, min(self.momentum, (1 + self.steps) / (10 + self.steps)))

    def state_dict(self) -> dict[str, Any]:
        return {**self.mean.model.state_dict(), "steps": torch.tensor(self.steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        weights = dict(state)
        self.steps = int(weights.pop("steps"))
        self.mean.model.load_state_dict(weights)


def averaged(
    model: EncoderWithHeads, momentum: float | None, others: Mapping[str, Follower]
) -> tuple[EncoderWithHeads, dict[str, Follower]]:
    """Return the model to score, and everything that follows the steps, by name.

    Without a momentum, these are the trained model itself and the `others`.
    """
    if momentum is None:
        return model, {**others}
    average = AveragedWeights(model, momentum)
    return average.mean.model, {**others, NAME: average}
