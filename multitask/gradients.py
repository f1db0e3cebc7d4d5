"""Objectives -> rows of gradient -> Gram matrix -> the combined gradient.

m objectives, D shared parameters. Each objective is differentiated on its own and its graph freed;
its gradient on the shared parameters becomes one row of a flat (m, D) buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

CHUNK = 1 << 16  # columns multiplied in float32 before they are added up in float64


class GradientRows:
    """The (m, D) buffer of gradients on the shared parameters, kept from step to step."""

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.width = sum(p.numel() for p in self.parameters)
        self.buffer: list[Tensor] = []  # rows, made when first needed
        self.used = 0

    def collect(self) -> None:
        """Move the parameters' present gradient into the next row, leaving them without one."""
        if self.used == len(self.buffer):
            device = self.parameters[0].device if self.parameters else None
            self.buffer.append(torch.empty(self.width, device=device))
        for slot, parameter in zip(
            self.slots(self.buffer[self.used]), self.parameters, strict=True
        ):
            if parameter.grad is None:
                slot.zero_()
            else:
                slot.copy_(parameter.grad)
                parameter.grad = None
        self.used += 1

    def gram(self) -> np.ndarray:
        """Inner products of the rows, float64: (m, m).

        Chunks of columns are multiplied in float32 and their products added up in float64, for a
        float32 sum over millions of columns would lose four digits.
        """
        total = torch.zeros(self.used, self.used, dtype=torch.float64)
        if self.width:
            total = total.to(self.buffer[0].device)
        for begin in range(0, self.width, CHUNK):
            part = torch.stack([row[begin : begin + CHUNK] for row in self.buffer[: self.used]])
            total += (part @ part.T).double()
        return total.cpu().numpy()

    def write_back(self, weights: np.ndarray) -> None:
        """Give the parameters the gradient `weights @ rows`, and empty the buffer.

        The first row becomes the sum: the gradients are views of it until the next step.
        """
        combined, *others = self.buffer[: self.used]
        combined.mul_(float(weights[0]))
        for row, weight in zip(others, weights[1:], strict=True):
            combined.add_(row, alpha=float(weight))
        for slot, parameter in zip(self.slots(combined), self.parameters, strict=True):
            parameter.grad = slot
        self.used = 0

    def slots(self, row: Tensor) -> list[Tensor]:
        """Views of a row (D,), one of each parameter's shape."""
        parts = row.split([p.numel() for p in self.parameters])
        return [part.view_as(p) for part, p in zip(parts, self.parameters, strict=True)]
