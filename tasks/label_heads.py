"""Heads with embeddings of labels: those of LaCon, LEAM and LSAN.

Sequences are packed, without padding. T tokens of S sequences, B examples, C labels, H width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from minbert.batching import Batch
from minbert.dropout import Dropout
from minbert.pooling import add_rows, max_pool
from tasks.base import example_embedding
from tasks.heads import SoftmaxClassifier

DROPOUT = 0.1
DEVIATION = 0.02  # of random label embeddings, as BERT's
WINDOW = 5  # tokens in the convolution's window, which LaCon does not specify
ATTENTION_WIDTH = 200  # d_a of LSAN, section 4.2


def perceptron(texts: int, width: int, layers: int) -> nn.Module:
    """Return linear layers with ReLU between them, from an example's embedding to `width`.

    That of two texts has three times the width. For 0 layers it is only a change of width, if any.
    """
    wide = width if texts == 1 else 3 * width
    if not layers and texts == 1:
        return nn.Identity()
    parts: list[nn.Module] = [nn.Linear(wide, width)]
    for _ in range(layers - 1):
        parts += [nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*parts)


class Projected(nn.Module):
    """Embeddings -> projection -> dropout -> logits (B, C)."""

    def __init__(self, texts: int, width: int, classes: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(texts, width, layers)
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)

    def forward(self, *texts: Tensor) -> Tensor:
        return self.classifier(self.projection(example_embedding(texts)))


class LabelHead(nn.Module):
    """A head with random embeddings of the labels (C, H).

    Adam's steps do not depend on a parameter's size: longer vectors would hardly change direction.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.labels = nn.Parameter(torch.randn(classes, width) * DEVIATION)


class LabelAnchors(LabelHead):
    """Projected embeddings of examples (B, H), and label embeddings (C, H) (LaCon, Eq. 1, 2)."""

    def __init__(self, texts: int, width: int, classes: int, layers: int) -> None:
        projection = perceptron(texts, width, layers)
        super().__init__(width, classes)
        self.projection = projection

    def forward(self, *texts: Tensor) -> tuple[Tensor, Tensor]:
        return self.projection(example_embedding(texts)), self.labels


class FusedAnchors(LabelAnchors):
    """Label anchors with attention to the tokens most similar to any label (LaCon, Eq. 9)."""

    def __init__(self, texts: int, width: int, classes: int, layers: int) -> None:
        super().__init__(texts, width, classes, layers)
        self.attention, self.pooled_width = LabelAttention(), width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)


class JointEmbedding(LabelHead):
    """Label-attentive embedding (B, H) -> logits (B, C), and the labels' own (C, C) (LEAM)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__(width, classes)
        self.attention, self.pooled_width = LabelAttention(rectified=True), width
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)

    def forward(self, text: Tensor) -> tuple[Tensor, Tensor]:
        return self.classifier(text), self.classifier(self.labels)


class LabelSpecific(LabelHead):
    """One embedding of a sequence per label, concatenated (S, C H) -> logits (B, C) (LSAN)."""

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
        padded = pad_sequence(cosines.split(batch.lengths.tolist()), batch_first=True)
        grid = padded.transpose(1, 2)  # (S, C, longest)
        rows = self.convolution(grid.flatten(0, 1)[:, None]).view_as(grid)
        strongest = (F.relu(rows) if self.rectified else rows).amax(1)  # (S, longest)
        scores = strongest[batch.sequence, batch.positions, None]  # (T, 1)
        return weighted_sums(softmax_over_tokens(scores, batch), hidden, batch)[:, 0]


def softmax_over_tokens(scores: Tensor, batch: Batch) -> Tensor:
    """Return weights (T, C) that sum to 1 over the tokens of each sequence."""
    top = max_pool(scores.detach(), batch)  # (S, C)
    weights = (scores - top[batch.sequence]).exp()
    return weights / add_rows(torch.zeros_like(top), batch.sequence, weights)[batch.sequence]


def weighted_sums(weights: Tensor, hidden: Tensor, batch: Batch) -> Tensor:
    """Sum the tokens of each sequence, weighted by each column of weights (T, C): (S, C, H)."""
    # One column at a time: all at once would need T x C x H numbers.
    zeros = hidden.new_zeros(len(batch.lengths), hidden.shape[1])
    columns = weights.unbind(1)
    return torch.stack([add_rows(zeros, batch.sequence, w[:, None] * hidden) for w in columns], 1)
