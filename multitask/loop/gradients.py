"""From objectives to gradient rows, their Gram matrix and the combined gradient.

m objectives, D shared parameters. Each objective is differentiated separately, and its gradient on
the shared parameters becomes one row. A row is a flat vector, except for the parameter with a
sparse gradient: a batch uses a few hundred of 30,000 words, and only their embeddings are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from common.errors import NotFiniteError
from multitask.distributed import Processes
from multitask.passes import LeafLosses

CHUNK = 1 << 16  # columns multiplied in float32 before they are added up in float64


class GradientRows:
    """The rows of one step, in buffers that all steps use.

    `sections` holds the shared parameters by the part of the model; `sparse` is the one parameter,
    if any, with sparse gradients. The gradients that `write_back` assigns are views of the buffers,
    so that they must be used and set to None before the next backward pass.
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
            if any(parameter.requires_grad for parameter in parameters):
                self.columns[name] = (begin, width)
        self.width = width
        self.buffer: list[Tensor] = []  # flat rows, allocated at first use
        self.sparse_rows: list[Tensor] = []  # coalesced sparse gradients of the rows in use
        self.sparse_indices = torch.empty(0, dtype=torch.long)  # indices that any row uses
        self.sparse_values = torch.empty(0)  # (m, lines, H): values of the rows at these indices
        self.scatter: Tensor | None = None  # the sparse parameter's combined gradient, dense
        self.used = 0
        self.begin, self.count = 0, 0  # first row, and number, of the current task's objectives

    @contextmanager
    def of_objectives(self, count: int) -> Iterator[None]:
        """Begin the rows of a task with so many objectives, to which `add` then adds."""
        self.begin, self.count = self.used, count
        yield
        # A single objective is collected once for all its pieces; a process without a piece
        # contributes rows of zeros.
        while self.used < self.begin + count:
            self.collect(self.used)

    def add(self, losses: LeafLosses) -> None:
        """Differentiate the task's losses on some of its examples."""
        for place, loss in enumerate(losses.by_objective.values()):
            losses.backward(loss, keep=place < self.count - 1)
            if self.count > 1:
                self.collect(self.begin + place)

    def collect(self, row: int) -> None:
        """Move the parameters' current gradient into a row.

        Rows are created in order: row `used` is new; an existing row accumulates gradients.
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
            if gradient is None:
                gradient = empty_sparse(self.sparse)
            check_sparse(gradient)
            if new:
                self.sparse_rows.append(gradient)
            else:
                self.sparse_rows[row] = self.sparse_rows[row] + gradient

    def reduce(self) -> None:
        """Align the sparse parts of the rows, and sum all rows over the processes."""
        if self.sparse is not None:
            parts = [gradient.coalesce() for gradient in self.sparse_rows]
            mark = torch.zeros(len(self.sparse), dtype=torch.int32, device=self.sparse.device)
            for part in parts:
                mark[part.indices()[0]] = 1
            used = self.processes.all_reduce_sum(mark) > 0
            self.sparse_indices = used.nonzero().squeeze(1)
            place = used.cumsum(0) - 1  # word -> its index in the block
            self.sparse_values = torch.zeros(
                self.used, len(self.sparse_indices), self.sparse.shape[1], device=self.sparse.device
            )
            for values, part in zip(self.sparse_values, parts, strict=True):
                values[place[part.indices()[0]]] = part.values()
            self.processes.all_reduce_sum(self.sparse_values)
            self.sparse_rows = []
        for row in self.buffer[: self.used]:
            self.processes.all_reduce_sum(row)

    def forget(self) -> None:
        """Discard the rows of a step that is skipped."""
        self.used, self.sparse_rows = 0, []

    def grams(self) -> dict[str, np.ndarray]:
        """Return the Gram matrix of the rows for each section, float64 (m, m).

        Chunks of columns are multiplied in float32 and their products added in float64, because a
        float32 sum over millions of columns would lose four digits.
        """
        self.reduce()
        rows = self.buffer[: self.used]
        found = {}
        for name, (begin, end) in self.columns.items():
            parts = [
                torch.stack([row[i : min(i + CHUNK, end)] for row in rows])
                for i in range(begin, end, CHUNK)
            ]
            if name == self.sparse_section and self.sparse is not None:
                parts += self.sparse_values.flatten(1).split(CHUNK, dim=1)
            total = np.zeros((self.used, self.used))
            if parts:
                total = torch.stack([(p @ p.T).double() for p in parts]).sum(0).cpu().numpy()
            found[name] = total
        return found

    def write_back(self, weights: np.ndarray) -> None:
        """Set the parameters' gradients to `weights @ rows`, and clear the rows.

        The sum is stored in the first row; the gradients are views of it until the next step.
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

    def make_dense(self) -> None:
        """Make the sparse gradient dense where no rows are kept, in a single process."""
        if self.sparse is None or self.sparse.grad is None:
            return
        gradient = self.sparse.grad
        check_sparse(gradient)
        if gradient.is_cuda:  # values of the same word would be added in any order
            gradient = gradient.coalesce()
        self.sparse.grad = self.zeros().add_(gradient)

    def scattered(self, weights: np.ndarray) -> Tensor:
        """Return the sparse parameter's combined gradient as a dense tensor, for fused AdamW."""
        found, factors = self.zeros(), torch.from_numpy(weights).to(self.sparse_values)
        found[self.sparse_indices] = torch.einsum("m,mlh->lh", factors, self.sparse_values)
        return found

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


class EmbeddingRows:
    """The rows of the objectives of one batch: their gradients with respect to its embeddings.

    They replace the gradients on the parameters (Sener and Koltun, 2018, section 3.3), so that one
    pass back through the encoder is enough. The embeddings of regularisers' passes are among them.
    """

    def __init__(self, processes: Processes) -> None:
        self.processes = processes

    @contextmanager
    def of_objectives(self, count: int) -> Iterator[None]:
        yield

    def add(self, losses: LeafLosses) -> None:
        self.losses, self.rows = losses, losses.rows()

    def grams(self) -> dict[str, np.ndarray]:
        gram = self.processes.all_reduce_sum((self.rows @ self.rows.T).double())
        return {"representation": gram.cpu().numpy()}

    def write_back(self, weights: np.ndarray) -> None:
        weighted = [float(w) * row for w, row in zip(weights, self.rows, strict=True)]
        self.losses.backward_row(torch.stack(weighted).sum(0))


def empty_sparse(parameter: Tensor) -> Tensor:
    """Return an empty sparse gradient (V, H) for a parameter."""
    index = torch.empty(1, 0, dtype=torch.long, device=parameter.device)
    return torch.sparse_coo_tensor(
        index, parameter.new_empty(0, parameter.shape[1]), parameter.shape, check_invariants=False
    )


def check_sparse(gradient: Tensor) -> None:
    """Raise ValueError for a dense gradient, which `write_back` or `make_dense` left."""
    if not gradient.is_sparse:
        raise ValueError(
            "expected a sparse gradient, found that of the previous step; zero it first"
        )


def check_finite(what: str, values: Iterable[float], names: Sequence[str]) -> None:
    """Raise NotFiniteError for the first value that is infinite or NaN."""
    for name, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            raise NotFiniteError(
                f"expected a finite {what} of {name}, found {value}; "
                "a new run with a lower --lr, --head-lr or --clip may help"
            )
