"""LaCon: labels have embeddings, with which the embeddings of examples are contrasted and matched.

Zhang, Zhao, Chen and He (2022): "Label Anchored Contrastive Learning for Language Understanding".
B examples, C labels, H width.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common.errors import UserError
from losses import instance_centered_loss, label_centered_loss, label_embedding_regularizer
from minbert.batching import Batch
from tasks.base import Task
from tasks.contrastive import example_embedding
from tasks.heads import SoftmaxClassifier
from tasks.label_attention import LabelAttention, label_table, start_at
from tasks.objectives import LaCon, Projection

DROPOUT = 0.1
HEADS = 6  # Figure 5b


class Anchored(NamedTuple):
    """Examples (B, H) and labels (C, H) in one space."""

    instances: Tensor
    labels: Tensor


class LabelAnchors(nn.Module):
    """Projected embeddings beside learnt label embeddings (Eq. 1 and 2)."""

    def __init__(self, wide: int, width: int, classes: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(wide, width, layers)
        self.texts = 1 if wide == width else 2
        self.labels = label_table(classes, width)

    def forward(self, *texts: Tensor) -> Anchored:
        return Anchored(self.projection(example_embedding(texts)), self.labels)

    def start(self, names: Tensor) -> None:
        """Begin with the labels where texts of these embeddings (C, H) are, or pairs of them.

        Without what all of them have in common: an untrained projection tells little apart.
        """
        start_at(self.labels, self(*[names] * self.texts).instances)


class FusedAnchors(LabelAnchors):
    """The same, of embeddings that attend to the tokens most like some label (Eq. 9)."""

    def __init__(self, wide: int, width: int, classes: int, layers: int) -> None:
        super().__init__(wide, width, classes, layers)
        self.attention = LabelAttention()
        self.pooled_width = width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)


def lacon(task: Task, settings: LaCon) -> Task:
    """ICL' + LCL + weight LER (Eq. 7); the label of the largest cosine is predicted (Eq. 8).

    LCL is counted from the lowest value that the batch's labels allow, which changes no gradient:
    combiners that want losses of zero or more get them.
    """
    classes, temperature = task.kind.classes, settings.label_temperature
    assert classes is not None

    def loss(outputs: Anchored, targets: Tensor) -> Tensor:
        instances, labels = outputs
        heads = heads_of(instances.shape[1], settings.label_heads)
        terms = {
            "icl": lambda: instance_centered_loss(instances, labels, targets, temperature, heads),
            "lcl": lambda: (
                label_centered_loss(instances, labels, targets, temperature)
                - lowest_label_centered(targets, temperature)
            ),
            "ler": lambda: settings.label_spread * label_embedding_regularizer(labels),
        }
        return torch.stack([terms[name]() for name in settings.label_terms]).sum()

    def scores(outputs: Anchored) -> Tensor:
        unit, labels = (F.normalize(vectors, dim=-1) for vectors in outputs)
        return (unit @ labels.T / temperature).softmax(-1)

    def build_head(width: int) -> nn.Module:
        heads_of(width, settings.label_heads)  # refused before anything is read
        anchors = FusedAnchors if settings.fusion else LabelAnchors
        return anchors(example_width(task, width), width, classes, settings.projection_layers)

    kind = replace(task.kind, loss=loss, scores=scores, divergence=None)
    return replace(task, kind=kind, build_head=build_head, several={}, in_batch=True)


def projected(task: Task, settings: Projection) -> Task:
    """Cross-entropy behind LaCon's projection head (Table 3, "BERT w/ g")."""
    classes = task.kind.classes
    assert classes is not None

    def build_head(width: int) -> nn.Module:
        return Projected(example_width(task, width), width, classes, settings.projection_layers)

    return replace(task, build_head=build_head, several={})


class Projected(nn.Module):
    """Embeddings -> projection -> dropout -> logits (B, C)."""

    def __init__(self, wide: int, width: int, classes: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(wide, width, layers)
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)

    def forward(self, *texts: Tensor) -> Tensor:
        return self.classifier(self.projection(example_embedding(texts)))


def lowest_label_centered(targets: Tensor, temperature: float) -> float:
    """Below it LCL of a batch with these labels (B,) cannot be.

    Every positive at cosine 1, every negative at -1:  |A(p)| (log |B(p)| - 2 / temperature), the
    mean over the labels present.
    """
    counts = targets.unique(return_counts=True)[1].double()
    if len(counts) < 2:
        return 0.0
    others = len(targets) - counts
    return float((counts * (others.log() - 2 / temperature)).mean())


def heads_of(width: int, wanted: int | None) -> int:
    """Slices of a vector; UserError for a number that does not divide its width."""
    if wanted is None:
        return next(count for count in range(HEADS, 0, -1) if width % count == 0)
    if width % wanted:
        raise UserError(
            f"--label-heads: expected a divisor of the embedding's width {width}, found {wanted}"
        )
    return wanted


def perceptron(wide: int, width: int, layers: int) -> nn.Module:
    """Layers of `width` with ReLU after each but the last; without any, what makes them fit."""
    if not layers:
        return nn.Identity() if wide == width else nn.Linear(wide, width)
    sizes = [wide] + [width] * layers
    parts: list[nn.Module] = []
    for size, following in pairwise(sizes):
        parts += [nn.Linear(size, following), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def example_width(task: Task, width: int) -> int:
    """Of an example's embedding, where a text's has `width`."""
    return width if task.vectors == 1 else 3 * width
