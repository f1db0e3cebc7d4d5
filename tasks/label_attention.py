"""LEAM and LSAN: classifiers in which labels attend to the tokens of a sequence.

Sequences are packed and have no padding. T tokens of S sequences, B examples, C labels, H width.

Wang et al. (2018): "Joint Embedding of Words and Labels for Text Classification".
Xiao et al. (2019): "Label-Specific Document Representation for Multi-Label Text Classification";
with a softmax over the labels in place of sigmoids, as LaCon compares it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.batching import Batch
from minbert.dropout import Dropout
from tasks.base import Task
from tasks.heads import SoftmaxClassifier

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


DROPOUT = 0.1


class Classified(NamedTuple):
    """Logits of the examples (B, C) and of the labels themselves (C, C)."""

    logits: Tensor
    of_labels: Tensor


class JointEmbedding(nn.Module):
    """Label-attentive embedding (B, H) -> logits; the labels through the same classifier."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.labels = label_table(classes, width)
        self.attention = LabelAttention(rectified=True)
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)
        self.pooled_width = width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)

    def forward(self, text: Tensor) -> Classified:
        return Classified(self.classifier(text), self.classifier(self.labels))

    def start(self, names: Tensor) -> None:
        """Begin with the labels at the names' embeddings (C, H)."""
        start_at(self.labels, names)


def leam(task: Task) -> Task:
    """Cross-entropy of the examples, and of each label's own embedding (Eq. 8 and 9)."""
    classes = task.kind.classes
    assert classes is not None

    def loss(outputs: Classified, targets: Tensor) -> Tensor:
        own = torch.arange(classes, device=targets.device)
        return F.cross_entropy(outputs.logits, targets) + F.cross_entropy(outputs.of_labels, own)

    kind = replace(
        task.kind,
        loss=loss,
        scores=lambda outputs: outputs.logits.softmax(-1),
        divergence=None,
    )
    build_head = lambda width: JointEmbedding(width, classes)  # noqa: E731
    return replace(task, kind=kind, build_head=build_head, several={})


ATTENTION_WIDTH = 200  # d_a, section 4.2


class LabelSpecific(nn.Module):
    """Embeddings of a sequence for each label (S, C H), in one row -> logits (B, C)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.labels = label_table(classes, width)
        self.tokens = nn.Linear(width, ATTENTION_WIDTH, bias=False)
        self.queries = nn.Linear(ATTENTION_WIDTH, classes, bias=False)
        self.gates = nn.ModuleList(nn.Linear(width, 1) for _ in range(2))
        self.hidden = nn.Linear(width, width)
        self.dropout = Dropout(DROPOUT)
        self.output = nn.Linear(width, 1)
        self.classes, self.pooled_width = classes, classes * width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Self-attention (Eq. 2 and 3), label-attention (Eq. 4 and 5), mixed (Eq. 6 to 9)."""
        own = softmax_over_tokens(self.queries(torch.tanh(self.tokens(hidden))), batch)
        # Inner products without a softmax, as the paper has them, but over the number of tokens:
        # or long texts would have long embeddings.
        labelled = hidden @ self.labels.T / batch.device_lengths[batch.sequence][:, None]
        first, second = (weighted_sums(weights, hidden, batch) for weights in (own, labelled))
        gates = [gate(m).sigmoid() for gate, m in zip(self.gates, (first, second), strict=True)]
        share = gates[0] / (gates[0] + gates[1])
        return (share * first + (1 - share) * second).flatten(1)

    def forward(self, text: Tensor) -> Tensor:
        specific = text.unflatten(1, (self.classes, -1))  # (B, C, H)
        return self.output(self.dropout(F.relu(self.hidden(specific))))[:, :, 0]

    def start(self, names: Tensor) -> None:
        """Begin with the labels at the names' embeddings (C, H)."""
        start_at(self.labels, names)


def lsan(task: Task) -> Task:
    """Cross-entropy of the label-specific embeddings."""
    classes = task.kind.classes
    assert classes is not None
    build_head = lambda width: LabelSpecific(width, classes)  # noqa: E731
    return replace(task, build_head=build_head, several={})
