"""LSAN: every label has its own embedding of a sequence, from self- and label-attention.

Xiao et al. (2019): "Label-Specific Document Representation for Multi-Label Text Classification";
with a softmax over the labels in place of sigmoids, as LaCon compares it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from minbert.batching import Batch
from minbert.dropout import Dropout
from tasks.base import Task
from tasks.label_attention import label_table, softmax_over_tokens, start_at, weighted_sums

DROPOUT = 0.1
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
