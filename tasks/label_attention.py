"""LEAM and LSAN: classifiers with attention of labels to the tokens of a sequence.

Sequences are packed, without padding. T tokens of S sequences, B examples, C labels, H width.

Wang et al. (2018): "Joint Embedding of Words and Labels for Text Classification".
Xiao et al. (2019): "Label-Specific Document Representation for Multi-Label Text Classification";
with a softmax over the labels instead of sigmoids, as in LaCon's comparison.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.row_sums import add_rows
from minbert.batching import Batch
from minbert.dropout import Dropout
from tasks.base import Task
from tasks.heads import SoftmaxClassifier

WINDOW = 5  # tokens in the convolution's window, which LaCon does not specify
DEVIATION = 0.02


class LabelAttention(nn.Module):
    """Sequence embedding from the tokens most similar to any label (LaCon, Eq. 9).

    Cosines of tokens and labels -> a convolution over the tokens, shared by all labels ->
    maximum over the labels -> softmax over the sequence's tokens -> weighted sum. With `rectified`
    the convolution is followed by ReLU (LEAM, Eq. 5; Wang et al., 2018). The convolution is
    initialised as the mean of its window: a random bias may keep the ReLU at zero permanently.
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
    """Return the index of each token in a flattened grid (S, longest): (T,)."""
    return batch.sequence * batch.longest + batch.positions


def padded(values: Tensor, batch: Batch) -> Tensor:
    """Pad packed values with zeros: (T, C) -> (S, longest, C)."""
    grid = values.new_zeros(len(batch.lengths) * batch.longest, values.shape[1])
    return grid.index_copy(0, places(batch), values).view(
        len(batch.lengths), batch.longest, values.shape[1]
    )


def softmax_over_tokens(scores: Tensor, batch: Batch) -> Tensor:
    """Return weights (T, C) that sum to 1 over the tokens of each sequence."""
    index = batch.sequence[:, None].expand_as(scores)
    shape = len(batch.lengths), scores.shape[1]
    top = scores.detach().new_full(shape, -torch.inf)
    top = top.scatter_reduce(0, index, scores.detach(), "amax")
    weights = (scores - top[batch.sequence]).exp()
    total = add_rows(scores.new_zeros(shape), batch.sequence, weights)
    return weights / total[batch.sequence]


def weighted_sums(weights: Tensor, hidden: Tensor, batch: Batch) -> Tensor:
    """Sum the tokens of each sequence, weighted by each column of weights (T, C): (S, C, H)."""
    # One column at a time: all at once would need T x C x H numbers.
    zeros = hidden.new_zeros(len(batch.lengths), hidden.shape[1])
    sums = [
        add_rows(zeros, batch.sequence, column[:, None] * hidden) for column in weights.unbind(1)
    ]
    return torch.stack(sums, 1)


def label_table(classes: int, width: int) -> nn.Parameter:
    """Return random label embeddings (C, H), normal with BERT's standard deviation of 0.02.

    Adam's steps do not depend on a parameter's size: longer vectors would hardly change direction.
    """
    return nn.Parameter(torch.randn(classes, width) * DEVIATION)


@torch.no_grad()
def init_from_names(labels: Tensor, names: Tensor) -> None:
    """Initialise the label embeddings with the centred embeddings of their names (C, H)."""
    labels.copy_(centred(names))


def centred(names: Tensor) -> Tensor:
    """Return name embeddings (C, H) minus their mean, scaled to the norm of `label_table`'s."""
    return F.normalize(names - names.mean(0), dim=-1) * (DEVIATION * names.shape[1] ** 0.5)


DROPOUT = 0.1


class Classified(NamedTuple):
    """Logits of the examples (B, C) and of the labels themselves (C, C)."""

    logits: Tensor
    of_labels: Tensor


class LabelHead(nn.Module):
    """A head with embeddings of the labels (C, H)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.labels = label_table(classes, width)

    def start(self, names: Tensor) -> None:
        """Initialise the labels with the embeddings of their names (C, H)."""
        init_from_names(self.labels, names)


class JointEmbedding(LabelHead):
    """Label-attentive embedding (B, H) -> logits; labels pass through the same classifier."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__(width, classes)
        self.attention = LabelAttention(rectified=True)
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)
        self.pooled_width = width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)

    def forward(self, text: Tensor) -> Classified:
        return Classified(self.classifier(text), self.classifier(self.labels))


def leam(task: Task) -> Task:
    """Return a task with cross-entropy of the examples and label embeddings (Eq. 8 and 9)."""
    classes = task.kind.classes
    assert classes is not None

    def loss(outputs: Classified, targets: Tensor) -> Tensor:
        own = torch.arange(classes, device=targets.device)
        return F.cross_entropy(outputs.logits, targets) + F.cross_entropy(outputs.of_labels, own)

    scores = lambda outputs: outputs.logits.softmax(-1)  # noqa: E731
    kind = replace(task.kind, loss=loss, scores=scores, divergence=None)
    return replace(task, kind=kind, build_head=partial(JointEmbedding, classes=classes), losses={})


ATTENTION_WIDTH = 200  # d_a, section 4.2


class LabelSpecific(LabelHead):
    """One embedding of a sequence per label, concatenated (S, C H) -> logits (B, C)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__(width, classes)
        self.tokens = nn.Linear(width, ATTENTION_WIDTH, bias=False)
        self.queries = nn.Linear(ATTENTION_WIDTH, classes, bias=False)
        self.gates = nn.ModuleList(nn.Linear(width, 1) for _ in range(2))
        self.hidden = nn.Linear(width, width)
        self.dropout = Dropout(DROPOUT)
        self.output = nn.Linear(width, 1)
        self.classes, self.pooled_width = classes, classes * width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        """Mix self-attention (Eq. 2 and 3) and label-attention (Eq. 4 and 5) by Eq. 6 to 9."""
        own = softmax_over_tokens(self.queries(torch.tanh(self.tokens(hidden))), batch)
        # Inner products without a softmax, as in the paper, but divided by the number of tokens:
        # otherwise the norm of embeddings would grow with the length of texts.
        labelled = hidden @ self.labels.T / batch.device_lengths[batch.sequence][:, None]
        first, second = (weighted_sums(weights, hidden, batch) for weights in (own, labelled))
        gates = [gate(m).sigmoid() for gate, m in zip(self.gates, (first, second), strict=True)]
        share = gates[0] / (gates[0] + gates[1])
        return (share * first + (1 - share) * second).flatten(1)

    def forward(self, text: Tensor) -> Tensor:
        specific = text.unflatten(1, (self.classes, -1))  # (B, C, H)
        return self.output(self.dropout(F.relu(self.hidden(specific))))[:, :, 0]


def lsan(task: Task) -> Task:
    """Return a task with cross-entropy of the label-specific embeddings."""
    classes = task.kind.classes
    assert classes is not None
    return replace(task, build_head=partial(LabelSpecific, classes=classes), losses={})
