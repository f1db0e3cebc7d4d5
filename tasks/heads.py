"""Task heads from sentence embeddings to logits or similarities. B examples, H width, C classes.

A head that pools token states (T, H) to sequence embeddings (S, `pooled_width`) itself has a method
`pool(hidden, batch)`.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.dropout import Dropout
from tasks.base import example_embedding

HEAD_DROPOUT = 0.3  # BEES, section 5.3
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
    """Both embeddings, with or without |u - v| -> dropout -> hidden -> ReLU -> logits (B, C).

    With the difference it is BEES' M5 (Reimers and Gurevych, 2019), without it the baseline M2.
    """

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

    With a hidden layer first it is BEES' M6, without it the baseline M3. The hidden layer is
    initialised as the identity, so that training starts from the encoder's own similarities.
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

    The head of a cross-encoder, on the embedding of both texts in one sequence. A sigmoid keeps
    the similarity on the scale, as in the CrossEncoder of sentence-transformers. The loss is the
    squared error of the task's kind, as for a bi-encoder.
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
