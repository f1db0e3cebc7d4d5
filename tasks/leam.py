"""LEAM: a sequence is what its tokens have of the labels, which are classified, too.

Wang et al. (2018): "Joint Embedding of Words and Labels for Text Classification".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.batching import Batch
from tasks.base import Task
from tasks.heads import SoftmaxClassifier
from tasks.label_attention import LabelAttention, label_table, start_at

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
