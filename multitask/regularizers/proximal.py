"""Bregman proximal point: predictions stay close to those of a running mean of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from multitask.averaging import RunningMean
from multitask.model import EncoderWithHeads
from multitask.regularizers.base import CleanPass, RegularizerState, Term


class ProximalTerm(RegularizerState):
    """weight x divergence(outputs, outputs of a teacher), a running mean of the model.

    After each step teacher <- momentum x teacher + (1 - momentum) x model: SMART's momentum Bregman
    proximal point method (Jiang et al., 2020, section 3.2). The teacher predicts without dropout.
    """

    def __init__(
        self, weights: Mapping[str, float], momentum: float, model: EncoderWithHeads
    ) -> None:
        self.weights, self.momentum = weights, momentum
        self.mean = RunningMean(model)
        self.teacher = self.mean.model

    def __call__(self, clean: CleanPass) -> Term:
        with torch.no_grad():
            texts = clean.embed(clean.batch, self.teacher)
            expected = self.teacher.heads[clean.task.name](*texts)
        divergence = clean.divergence(clean.outputs, expected)
        return Term(self.weights[clean.task.name] * divergence)

    def after_step(self, model: EncoderWithHeads) -> None:
        # Without training of the encoder the teacher copies the model.
        self.mean.update(model, 0.0 if model.trains_only_heads else self.momentum)

    def state_dict(self) -> dict[str, Any]:
        return self.teacher.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.teacher.load_state_dict(state)
