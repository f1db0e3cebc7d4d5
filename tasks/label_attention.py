"""Attention of labels to the tokens of sequences, which are packed and have no padding.

T tokens of S sequences, C labels, H width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.batching import Batch

WINDOW = 5  # tokens that the convolution sees; LaCon does not tell its own
DEVIATION = 0.02


class LabelAttention(nn.Module):
    """A sequence's embedding from the tokens that are like some label (LaCon, Eq. 9).

    Cosines of tokens and labels -> a convolution over the tokens, the same for all labels ->
    maximum over the labels -> softmax over the sequence's tokens -> weighted sum. With `rectified`
    the convolution is followed by ReLU (LEAM, Eq. 5; Wang et al., 2018). The convolution begins as
    the mean of its window: with PyTorch's random start a bias alone may silence the ReLU for good.
    """

    def __init__(self, rectified: bool = False) -> None:
        super().__init__()
        self.rectified = rectified
        self.convolution = nn.Conv1d(1, 1, WINDOW, padding=WINDOW // 2)
        nn.init.constant_(self.convolution.weight, 1 / WINDOW)
        nn.init.zeros_(self.convolution.bias)  # type: ignore[arg-type]

    def forward(self, hidden: Tensor, batch: Batch, labels: Tensor) -> Tensor:
        cosines = F.normalize(hidden, dim=-1) @ F.normalize(labels, dim=-1).T  # (T, C)
        grid = padded(cosines, batch).transpose(1, 2)  # (S, C, longest)
        rows = self.convolution(grid.flatten(0, 1)[:, None]).view_as(grid)
        strongest = (F.relu(rows) if self.rectified else rows).amax(1)  # (S, longest)
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
    # A column at a time: all at once would take T x C x H numbers.
    sums = [
        hidden.new_zeros(len(batch.lengths), hidden.shape[1]).index_add(
            0, batch.sequence, column[:, None] * hidden
        )
        for column in weights.unbind(1)
    ]
    return torch.stack(sums, 1)


def label_table(classes: int, width: int) -> nn.Parameter:
    """Random label embeddings (C, H), normal with BERT's deviation of 0.02.

    Adam moves a number by the learning rate a step, whatever its size: larger ones hardly turn.
    """
    return nn.Parameter(torch.randn(classes, width) * DEVIATION)


@torch.no_grad()
def start_at(labels: Tensor, names: Tensor) -> None:
    """Begin with the labels at the embeddings of their names (C, H), centred."""
    labels.copy_(centred(names))


def centred(names: Tensor) -> Tensor:
    """Embeddings of names (C, H) without what all have in common, as long as `label_table`'s."""
    return F.normalize(names - names.mean(0), dim=-1) * (DEVIATION * names.shape[1] ** 0.5)
