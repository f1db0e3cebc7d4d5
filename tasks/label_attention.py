"""Attention of labels to the tokens of sequences, which are packed and have no padding.

T tokens of S sequences, C labels, H width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.batching import Batch

WINDOW = 5  # tokens that the convolution sees; neither LaCon nor its source fits ours


class LabelAttention(nn.Module):
    """A sequence's embedding from the tokens that are like some label (LEAM, Eq. 4 to 7).

    Cosines of tokens and labels -> a convolution over the tokens, the same for all labels -> ReLU
    -> maximum over the labels -> softmax over the sequence's tokens -> weighted sum (Wang et al.,
    2018; LaCon, Eq. 9).
    """

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(1, 1, WINDOW, padding=WINDOW // 2)

    def forward(self, hidden: Tensor, batch: Batch, labels: Tensor) -> Tensor:
        cosines = F.normalize(hidden, dim=-1) @ F.normalize(labels, dim=-1).T  # (T, C)
        grid = padded(cosines, batch).transpose(1, 2)  # (S, C, longest)
        rows = self.convolution(grid.flatten(0, 1)[:, None])  # (S C, 1, longest)
        strongest = F.relu(rows.view_as(grid)).amax(1)  # (S, longest)
        scores = strongest.flatten()[places(batch)]  # (T,)
        return weighted_sums(softmax_over_tokens(scores[:, None], batch), hidden, batch)[:, 0]


def places(batch: Batch) -> Tensor:
    """Where each token is in a grid (S, longest) laid out in a row: (T,)."""
    return batch.sequence * batch.longest + batch.positions


def padded(values: Tensor, batch: Batch) -> Tensor:
    """(T, C) -> (S, longest, C), zero beyond a sequence's end."""
    grid = values.new_zeros(len(batch.lengths) * batch.longest, values.shape[1])
    return grid.index_copy(0, places(batch), values).view(
        len(batch.lengths), batch.longest, values.shape[1]
    )


def softmax_over_tokens(scores: Tensor, batch: Batch) -> Tensor:
    """Weights (T, C) that add up to 1 over the tokens of each sequence."""
    index = batch.sequence[:, None].expand_as(scores)
    shape = len(batch.lengths), scores.shape[1]
    top = scores.detach().new_full(shape, -torch.inf)
    top = top.scatter_reduce(0, index, scores.detach(), "amax")
    weights = (scores - top[batch.sequence]).exp()
    total = scores.new_zeros(shape).index_add(0, batch.sequence, weights)
    return weights / total[batch.sequence]


def weighted_sums(weights: Tensor, hidden: Tensor, batch: Batch) -> Tensor:
    """Of the tokens of each sequence, by each column of weights (T, C): (S, C, H)."""
    terms = weights[:, :, None] * hidden[:, None]  # (T, C, H)
    total = hidden.new_zeros(len(batch.lengths), *terms.shape[1:])
    return total.index_add(0, batch.sequence, terms)
