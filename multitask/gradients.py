"""Objectives -> rows of gradient -> Gram matrix -> the combined gradient.

m objectives, D shared parameters. Each objective is differentiated on its own, its graph freed with
the last one that needs it; its gradient on the shared parameters becomes one row. A row is a flat
vector, but for parameters whose gradient is sparse (word embeddings: a batch touches a few hundred
of 30,000 words), of which it keeps the touched lines alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from multitask.distributed import Processes

CHUNK = 1 << 16  # columns multiplied in float32 before they are added up in float64


class GradientRows:
    """The rows of one step, in buffers that are kept from step to step.

    `sections` names the shared parameters by the part of the model they belong to; `sparse` is the
    one parameter, if any, whose gradients come as sparse tensors. The gradients that `write_back`
    leaves are views of the buffers: they are used and set to None before the next backward.
    """

    def __init__(
        self,
        sections: Mapping[str, Sequence[nn.Parameter]],
        sparse: nn.Parameter | None = None,
        processes: Processes = Processes(),
    ) -> None:
        self.processes = processes
        self.sparse = sparse if sparse is not None and sparse.requires_grad else None
        self.dense: list[nn.Parameter] = []
        self.columns: dict[str, tuple[int, int]] = {}  # section -> its columns of a flat row
        self.sparse_section = ""
        width = 0
        for name, parameters in sections.items():
            begin = width
            for parameter in parameters:
                if parameter is self.sparse:
                    self.sparse_section = name
                elif parameter.requires_grad:
                    self.dense.append(parameter)
                    width += parameter.numel()
            self.columns[name] = (begin, width)
        self.width = width
        self.buffer: list[Tensor] = []  # flat rows, made when first needed
        self.touched: list[Tensor] = []  # coalesced sparse gradients of the rows in use
        self.lines = torch.empty(0, dtype=torch.long)  # of the sparse parameter, touched by any row
        self.block = torch.empty(0)  # (m, lines, H): the rows' values there
        self.scatter: Tensor | None = None  # the sparse parameter's combined gradient, dense
        self.used = 0

    def collect(self, row: int) -> None:
        """Add the parameters' present gradient to a row, leaving them without one.

        Rows are begun in order: row `used` is new, a smaller one gets more.
        """
        if row > self.used:
            raise ValueError(f"row: expected at most {self.used}, found {row}")
        new = row == self.used
        if row == len(self.buffer):
            device = self.dense[0].device if self.dense else None
            self.buffer.append(torch.empty(self.width, device=device))
        for slot, parameter in zip(self.slots(self.buffer[row]), self.dense, strict=True):
            if parameter.grad is not None:
                slot.copy_(parameter.grad) if new else slot.add_(parameter.grad)
                parameter.grad = None
            elif new:
                slot.zero_()
        if new:
            self.used += 1
        if self.sparse is not None:
            gradient, self.sparse.grad = self.sparse.grad, None
            if gradient is not None and not gradient.is_sparse:
                raise ValueError(
                    "expected a sparse gradient, found the step before's: zero it first"
                )
            if gradient is None:
                gradient = no_lines(self.sparse)
            if new:
                self.touched.append(gradient)
            else:
                self.touched[row] = self.touched[row] + gradient

    def reduce(self) -> None:
        """Bring the sparse parts to common lines, and add all rows up over the processes."""
        if self.sparse is not None:
            parts = [gradient.coalesce() for gradient in self.touched]
            mark = torch.zeros(len(self.sparse), dtype=torch.uint8, device=self.sparse.device)
            for part in parts:
                mark[part.indices()[0]] = 1
            self.processes.all_reduce_max(mark)
            self.lines = mark.nonzero().squeeze(1)
            place = mark.long().cumsum(0) - 1  # word -> its line of the block
            self.block = torch.zeros(
                self.used, len(self.lines), self.sparse.shape[1], device=self.sparse.device
            )
            for values, part in zip(self.block, parts, strict=True):
                values[place[part.indices()[0]]] = part.values()
            self.processes.all_reduce_sum(self.block)
            self.touched = []
        for row in self.buffer[: self.used]:
            self.processes.all_reduce_sum(row)

    def forget(self) -> None:
        """Empty the rows of a step that is not taken."""
        self.used, self.touched = 0, []

    def grams(self) -> dict[str, np.ndarray]:
        """Inner products of the rows on each section, float64 (m, m); they add up to the whole.

        Chunks of columns are multiplied in float32 and their products added up in float64, for a
        float32 sum over millions of columns would lose four digits.
        """
        rows = self.buffer[: self.used]
        found = {}
        for name, (begin, end) in self.columns.items():
            parts = [
                torch.stack([row[i : min(i + CHUNK, end)] for row in rows])
                for i in range(begin, end, CHUNK)
            ]
            if name == self.sparse_section and self.sparse is not None:
                parts += self.block.flatten(1).split(CHUNK, dim=1)
            total = np.zeros((self.used, self.used))
            if parts:
                total = torch.stack([(p @ p.T).double() for p in parts]).sum(0).cpu().numpy()
            found[name] = total
        return found

    def write_back(self, weights: np.ndarray) -> None:
        """Give the parameters the gradient `weights @ rows`, and empty the rows.

        The first row becomes the sum: the gradients are views of it until the next step.
        """
        combined, *others = self.buffer[: self.used]
        if weights[0] != 1:
            combined.mul_(float(weights[0]))
        for row, weight in zip(others, weights[1:], strict=True):
            combined.add_(row, alpha=float(weight))
        for slot, parameter in zip(self.slots(combined), self.dense, strict=True):
            parameter.grad = slot
        if self.sparse is not None:
            self.sparse.grad = self.scattered(weights)
        self.used = 0

    def scattered(self, weights: np.ndarray) -> Tensor:
        """The sparse parameter's combined gradient as the dense tensor that fused AdamW wants."""
        assert self.sparse is not None
        if self.scatter is None:
            self.scatter = torch.empty_like(self.sparse)
        self.scatter.zero_()
        factors = torch.from_numpy(weights).to(self.block)
        self.scatter[self.lines] = torch.einsum("m,mlh->lh", factors, self.block)
        return self.scatter

    def slots(self, row: Tensor) -> list[Tensor]:
        """Views of a flat row (D,), one of each dense parameter's shape."""
        parts = row.split([p.numel() for p in self.dense])
        return [part.view_as(p) for part, p in zip(parts, self.dense, strict=True)]


def whole_gram(grams: Mapping[str, np.ndarray]) -> np.ndarray:
    """The Gram matrix (m, m) of whole gradients from those of their sections."""
    return np.sum(list(grams.values()), axis=0)


def no_lines(parameter: Tensor) -> Tensor:
    """A sparse gradient (V, H) of a parameter of which no line was touched."""
    index = torch.empty(1, 0, dtype=torch.long, device=parameter.device)
    return torch.sparse_coo_tensor(
        index, parameter.new_empty(0, parameter.shape[1]), parameter.shape, check_invariants=False
    )
