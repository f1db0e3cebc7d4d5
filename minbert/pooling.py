"""Pooling of tokens' hidden states into one embedding per sentence, over real tokens only."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from minbert.batching import Batch
from minbert.config import Pooling

Pool = Callable[[Tensor, Batch], Tensor]  # hidden states (T, H) -> embeddings (S, H)


def add_rows(total: Tensor, index: Tensor, values: Tensor) -> Tensor:
    """Return `total` (S, ...) plus each row of `values` (T, ...) at its row `index` (T,).

    On a GPU, `index_add` adds in any order, so that two calls round differently; `index_put` sorts
    the rows first.
    """
    if values.is_cuda:
        return total.index_put((index,), values, accumulate=True)
    return total.index_add(0, index, values)


def mean_pool(hidden: Tensor, batch: Batch) -> Tensor:
    """Average all tokens, special ones included (Reimers and Gurevych, 2019): (T, H) -> (S, H)."""
    lengths = batch.device_lengths.to(hidden.dtype)
    total = hidden.new_zeros(len(lengths), hidden.shape[1])
    return add_rows(total, batch.sequence, hidden) / lengths[:, None]


def cls_pool(hidden: Tensor, batch: Batch) -> Tensor:
    """Return the first token, [CLS] or <s>: (T, H) -> (S, H)."""
    return hidden[batch.starts]


def max_pool(hidden: Tensor, batch: Batch) -> Tensor:
    """Compute the element-wise maximum over the tokens: (T, H) -> (S, H)."""
    index = batch.sequence[:, None].expand_as(hidden)
    lowest = hidden.new_full((len(batch.lengths), hidden.shape[1]), -math.inf)
    return lowest.scatter_reduce(0, index, hidden, "amax", include_self=False)


POOLINGS: dict[Pooling, Pool] = {"mean": mean_pool, "cls": cls_pool, "max": max_pool}
# Keys of the poolings in the folders of sentence-transformers. The ONNX export pools by itself.
FOLDER_KEYS: dict[Pooling, str] = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}
