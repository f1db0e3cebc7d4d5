"""Random projections of gradients to few columns, which keep inner products on average."""

from __future__ import annotations

import torch
from torch import Tensor

from common.row_sums import add_rows
from multitask.loop.gradients import GradientRows

COLUMNS = 4093  # a prime, so that the dimensions of one unit of a layer fall into all columns


class Sketch:
    """A sign sketch: coordinate i is multiplied by a random sign and added to column i mod K.

    With independent signs, the product of two sketches has the product of the vectors as its
    mean, and a standard deviation of about the product of their lengths divided by sqrt(K)
    (count sketch; Charikar et al., 2002; Weinberger et al., 2009, with fixed columns). Grad-TAG
    (Li et al., 2024) projects with Gaussian numbers, which need K times as many of them.
    """

    def __init__(self, rows: GradientRows, seed: int, columns: int = COLUMNS) -> None:
        self.rows, self.columns = rows, columns
        generator = torch.Generator().manual_seed(seed)

        def signs(*shape: int) -> Tensor:
            drawn = torch.randint(0, 2, shape, generator=generator, dtype=torch.int8)
            return (2 * drawn - 1).to(device)

        device = rows.dense[0].device if rows.dense else torch.device("cpu")
        self.signs = signs(rows.width)
        self.word_signs = signs(*rows.sparse.shape) if rows.sparse is not None else None

    def __call__(self, row: int) -> Tensor:
        """Return the sketch (K,) of a row that `GradientRows.reduce` has completed."""
        values = self.rows.buffer[row] * self.signs
        whole = self.rows.width // self.columns * self.columns
        found = values[:whole].view(-1, self.columns).sum(0)
        found[: self.rows.width - whole] += values[whole:]
        if self.word_signs is not None:
            words = self.rows.sparse_indices
            values = (self.rows.sparse_values[row] * self.word_signs[words]).flatten()
            width = self.word_signs.shape[1]
            place = words[:, None] * width + torch.arange(width, device=words.device)
            columns = (place.flatten() + self.rows.width) % self.columns
            found = add_rows(found, columns, values)
        return found
