"""Sums of rows that belong together, in an order that does not change from call to call."""

from __future__ import annotations

from common.later import Tensor


def add_rows(total: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Return `total` (S, ...) plus each row of `values` (T, ...) at its row `index` (T,).

    On a GPU, `index_add` adds in any order, so that two calls round differently; `index_put` sorts
    the rows first.
    """
    if values.is_cuda:
        return total.index_put((index,), values, accumulate=True)
    return total.index_add(0, index, values)
