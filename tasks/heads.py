"""Task heads from sentence embeddings to logits or similarities. B examples, H width, C classes.

A head with a method `pool` makes the sequence embeddings (S, `pooled_width`) of tokens (T, H).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from minbert.batching import Batch
from minbert.dropout import Dropout
from minbert.pooling import add_rows, max_pool
from tasks.base import example_embedding

HEAD_DROPOUT = 0.3  # BEES, section 5.3
DROPOUT = 0.1  # of heads with embeddings of labels
DEVIATION = 0.02  # of random label embeddings, as BERT's
WINDOW = 5  # tokens in the convolution's window, which LaCon does not specify
ATTENTION_WIDTH = 200  # d_a of LSAN, section 4.2
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "sigmoid": torch.sigmoid,
    "none": lambda cosine: cosine,
}


class HiddenClassifier(nn.Module):
    """Hidden layer -> ReLU -> dropout -> logits: (B, H) -> (B, C) (BEES, M4)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, width)
        self.dropout = Dropout(HEAD_DROPOUT)
        self.output = nn.Linear(width, classes)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.output(self.dropout(F.relu(self.hidden(embedding))))


class SoftmaxClassifier(nn.Module):
    """Dropout -> logits, from the embedding, usually [CLS]: (B, H) -> (B, C) (BEES, M1)."""

    def __init__(self, width: int, classes: int, dropout: float = HEAD_DROPOUT) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.output = nn.Linear(width, classes)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.output(self.dropout(embedding))


class PairClassifier(nn.Module):
    """Both embeddings, with (BEES, M5) or without |u - v| (M2) -> dropout -> hidden -> logits."""

    def __init__(self, width: int, classes: int, difference: bool) -> None:
        super().__init__()
        self.difference = difference
        self.dropout = Dropout(HEAD_DROPOUT)
        self.hidden = nn.Linear(width * (3 if difference else 2), width)
        self.output = nn.Linear(width, classes)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        pair = example_embedding((u, v)) if self.difference else torch.cat([u, v], -1)
        return self.output(F.relu(self.hidden(self.dropout(pair))))


class CosineSimilarity(nn.Module):
    """Cosine of both embeddings -> activation -> times `scale`: two (B, H) -> (B,).

    With a hidden layer first, which begins as the identity, it is BEES' M6, without it M3.
    """

    def __init__(self, width: int, scale: float, hidden: bool, activation: str) -> None:
        super().__init__()
        self.scale, self.activation = scale, ACTIVATIONS[activation]
        self.hidden = nn.Linear(width, width) if hidden else nn.Identity()
        if isinstance(self.hidden, nn.Linear):
            nn.init.eye_(self.hidden.weight)
            nn.init.zeros_(self.hidden.bias)

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        cosine = F.cosine_similarity(self.hidden(u), self.hidden(v))
        return self.activation(cosine) * self.scale


class JointSimilarity(nn.Module):
    """Dropout -> hidden -> ReLU -> one number -> sigmoid -> times `scale`: (B, H) -> (B,).

    The head of both texts in one sequence, as in the CrossEncoder of sentence-transformers.
    """

    def __init__(self, width: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.dropout = Dropout(HEAD_DROPOUT)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)

    def forward(self, embedding: Tensor) -> Tensor:
        number = self.output(F.relu(self.hidden(self.dropout(embedding))))  # (B, 1)
        return torch.sigmoid(number.squeeze(-1)) * self.scale


def perceptron(texts: int, width: int, layers: int) -> nn.Module:
    """Return linear layers with ReLU between them, from an example's embedding to `width`."""
    wide = width if texts == 1 else 3 * width
    if not layers and texts == 1:
        return nn.Identity()
    parts: list[nn.Module] = [nn.Linear(wide, width)]
    for _ in range(layers - 1):
        parts += [nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*parts)


class Projected(nn.Module):
    """Embeddings -> projection -> dropout -> logits (B, C)."""

    def __init__(self, width: int, classes: int, texts: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(texts, width, layers)
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)

    def forward(self, *texts: Tensor) -> Tensor:
        return self.classifier(self.projection(example_embedding(texts)))


class LabelAnchors(nn.Module):
    """Projected embeddings of examples (B, H), and label embeddings (C, H) (LaCon, Eq. 1, 2)."""

    def __init__(self, width: int, classes: int, texts: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(texts, width, layers)
        self.labels = label_embeddings(width, classes)

    def forward(self, *texts: Tensor) -> tuple[Tensor, Tensor]:
        return self.projection(example_embedding(texts)), self.labels


def label_embeddings(width: int, classes: int) -> nn.Parameter:
    """Return random embeddings of labels (C, H), so short that Adam's steps turn them."""
    return nn.Parameter(torch.randn(classes, width) * DEVIATION)


class FusedAnchors(LabelAnchors):
    """Label anchors with attention to the tokens most similar to any label (LaCon, Eq. 9)."""

    def __init__(self, width: int, classes: int, texts: int, layers: int) -> None:
        super().__init__(width, classes, texts, layers)
        self.attention, self.pooled_width = LabelAttention(), width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)


class JointEmbedding(nn.Module):
    """Label-attentive embedding (B, H) -> logits (B, C), and the labels' own (C, C) (LEAM)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.labels = label_embeddings(width, classes)
        self.attention, self.pooled_width = LabelAttention(rectified=True), width
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)

    def forward(self, text: Tensor) -> tuple[Tensor, Tensor]:
        return self.classifier(text), self.classifier(self.labels)


class LabelSpecific(nn.Module):
    """One embedding of a sequence per label, concatenated (S, C H) -> logits (B, C) (LSAN)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.labels = label_embeddings(width, classes)
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

    Cosines of tokens and labels -> a convolution over the tokens -> maximum over the labels ->
    softmax over the tokens -> weighted sum. With `rectified`, ReLU follows the convolution (LEAM,
    Eq. 5), which begins as the mean of its window: a random bias may keep the ReLU at zero.
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
