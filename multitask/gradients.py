"""Objectives -> rows of gradient -> Gram matrix -> the combined gradient.

m objectives, D shared parameters. Each objective is differentiated on its own and its graph freed;
its gradient on the shared parameters becomes one row of an (m, D) buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn


class GradientRows:
    """The (m, D) buffer of gradients on the shared parameters, kept from step to step."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.rows: list[list[Tensor]] = []  # a row: one tensor a parameter
        self.used = 0

    def collect(self) -> None:
        """Move the parameters' present gradient into the next row, leaving them without one."""
        if self.used == len(self.rows):
            self.rows.append([torch.empty_like(p) for p in self.parameters])
        for slot, parameter in zip(self.rows[self.used], self.parameters, strict=True):
            if parameter.grad is None:
                slot.zero_()
            else:
                slot.copy_(parameter.grad)
                parameter.grad = None
        self.used += 1

    def gram(self) -> np.ndarray:
        """Inner products of the rows, added up over the parameters in float64: (m, m)."""
        total = np.zeros((self.used, self.used))
        for parts in zip(*self.rows[: self.used], strict=True):
            stacked = [part.flatten() for part in parts]
            for i in range(self.used):
                for j in range(i + 1):
                    total[i, j] += float(torch.dot(stacked[i], stacked[j]))
        return np.tril(total) + np.tril(total, -1).T

    def write_back(self, weights: np.ndarray) -> None:
        """Give the parameters the gradient `weights @ rows`, and empty the buffer."""
        for slots, parameter in zip(
            zip(*self.rows[: self.used], strict=True), self.parameters, strict=True
        ):
            combined = slots[0] * float(weights[0])
            for slot, weight in zip(slots[1:], weights[1:], strict=True):
                combined.add_(slot, alpha=float(weight))
            parameter.grad = combined
        self.used = 0
