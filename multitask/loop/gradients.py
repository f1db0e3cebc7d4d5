"""From objectives to gradient rows, their Gram matrix and the combined gradient.

m objectives, D parameters. Each objective is differentiated separately, and its gradient becomes
one row. A row is a flat vector, except for the parameter with a sparse gradient: a batch uses a few
hundred of 30,000 words, and only their embeddings are kept.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from common.errors import RunError
from multitask.distributed import Processes

CHUNK = 1 << 16  # columns multiplied in float32 before they are added up in float64


class GradientRows:
    """The rows of one step, in buffers that all steps use.

    `sections` holds the parameters by the part of the model; `sparse` is the one parameter, if any,
    with sparse gradients, of the first section. The gradients that `write_back` assigns are views
    of the buffers, so that they must be used and set to None before the next backward pass.
    """

    def __init__(
        self,
        sections: Mapping[str, Sequence[Tensor]],
        sparse: Tensor | None = None,
        processes: Processes = Processes(),
    ) -> None:
        self.processes = processes
        self.sparse = sparse if sparse is not None and sparse.requires_grad else None
        self.dense: list[Tensor] = []
        self.columns: dict[str, tuple[int, int]] = {}  # section -> its columns of a flat row
        self.width = 0
        for name, parameters in sections.items():
            trained = [one for one in parameters if one.requires_grad]
            own, begin = [one for one in trained if one is not self.sparse], self.width
            self.dense += own
            self.width += sum(one.numel() for one in own)
            if trained:
                self.columns[name] = (begin, self.width)
        self.buffer: list[Tensor] = []  # flat rows, allocated at first use
        self.sparse_rows: list[Tensor | None] = []  # sparse gradients of the rows in use
        self.words = torch.empty(0, dtype=torch.long)  # lines of the sparse parameter in any row
        self.block = torch.empty(0)  # (m, words, H): the rows at these lines
        self.scatter: Tensor | None = None  # the sparse parameter's combined gradient, dense
        self.used = 0

    def collect(self, row: int) -> None:
        """Move the parameters' gradients into a row; row `used` is new, others accumulate."""
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
            self.sparse_rows.append(None)
        if self.sparse is not None and self.sparse.grad is not None:
            gradient, self.sparse.grad, earlier = self.sparse.grad, None, self.sparse_rows[row]
            self.sparse_rows[row] = gradient if earlier is None else earlier + gradient

    def reduce(self) -> None:
        """Align the sparse parts of the rows, and sum all rows over the processes."""
        if self.sparse is not None:
            parts = [None if one is None else one.coalesce() for one in self.sparse_rows]
            mark = torch.zeros(len(self.sparse), dtype=torch.int32, device=self.sparse.device)
            for part in parts:
                if part is not None:
                    mark[part.indices()[0]] = 1
            used = self.processes.all_reduce_sum(mark) > 0
            self.words = used.nonzero().squeeze(1)
            place = used.cumsum(0) - 1  # line of the parameter -> its line in the block
            self.block = self.sparse.new_zeros(self.used, len(self.words), self.sparse.shape[1])
            for values, part in zip(self.block, parts, strict=True):
                if part is not None:
                    values[place[part.indices()[0]]] = part.values()
            self.processes.all_reduce_sum(self.block)
        for row in self.buffer[: self.used]:
            self.processes.all_reduce_sum(row)

    def grams(self) -> dict[str, np.ndarray]:
        """Return the Gram matrix of the rows for each section, float64 (m, m).

        Chunks of columns are multiplied in float32 and their products added in float64, because a
        float32 sum over millions of columns would lose four digits.
        """
        self.reduce()
        rows = self.buffer[: self.used]
        found: dict[str, np.ndarray] = {}
        for name, (begin, end) in self.columns.items():
            parts = [
                torch.stack([row[i : min(i + CHUNK, end)] for row in rows])
                for i in range(begin, end, CHUNK)
            ]
            if self.sparse is not None and not found:  # it is in the first section
                parts += self.block.flatten(1).split(CHUNK, dim=1)
            total = np.zeros((self.used, self.used))
            if parts:
                total = torch.stack([(p @ p.T).double() for p in parts]).sum(0).cpu().numpy()
            found[name] = total
        return found

    def write_back(self, weights: np.ndarray) -> None:
        """Set the parameters' gradients to `weights @ rows`, and clear the rows.

        The sum is in the memory of the first row.
        """
        combined, *others = self.buffer[: self.used]
        if weights[0] != 1:
            combined.mul_(float(weights[0]))
        for row, weight in zip(others, weights[1:], strict=True):
            combined.add_(row, alpha=float(weight))
        for slot, parameter in zip(self.slots(combined), self.dense, strict=True):
            parameter.grad = slot
        if self.sparse is not None:
            factors = torch.from_numpy(weights).to(self.block)
            self.sparse.grad = self.zeros()
            self.sparse.grad[self.words] = torch.einsum("m,mlh->lh", factors, self.block)
        self.used, self.sparse_rows = 0, []

    def make_dense(self) -> None:
        """Make the sparse gradient dense, for fused AdamW, where no rows are kept."""
        if self.sparse is None or (gradient := self.sparse.grad) is None or not gradient.is_sparse:
            return
        if gradient.is_cuda:  # values of the same word would be added in any order
            gradient = gradient.coalesce()
        self.sparse.grad = self.zeros().add_(gradient)

    def zeros(self) -> Tensor:
        """Return zeros in the shape of the sparse parameter, in memory that all steps use."""
        assert self.sparse is not None
        if self.scatter is None:
            self.scatter = torch.empty_like(self.sparse)
        return self.scatter.zero_()

    def slots(self, row: Tensor) -> list[Tensor]:
        """Return views of a flat row (D,), with the shapes of the dense parameters."""
        parts = row.split([p.numel() for p in self.dense])
        return [part.view_as(p) for part, p in zip(parts, self.dense, strict=True)]


def check_finite(what: str, values: Iterable[float], names: Sequence[str]) -> None:
    """Raise RunError for the first value that is infinite or NaN."""
    for name, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            line = "train again with a lower --lr, --head-lr or --clip"
            raise RunError(f"the {what} of {name} is {value}; {line}")
