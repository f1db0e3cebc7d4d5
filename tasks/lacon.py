"""LaCon: contrastive learning of examples and label embeddings, and classification by both.

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

from common.errors import SettingsError
from losses import instance_centered_loss, label_centered_loss, label_embedding_regularizer
from minbert.batching import Batch
from tasks.base import Task, example_embedding
from tasks.heads import SoftmaxClassifier
from tasks.label_attention import LabelAttention, init_from_names, label_table
from tasks.objectives import LaCon, Projection

DROPOUT = 0.1
HEADS = 6  # Figure 5b


class Anchored(NamedTuple):
    """Examples (B, H) and labels (C, H) in one space."""

    instances: Tensor
    labels: Tensor


class LabelAnchors(nn.Module):
    """Projected embeddings of examples, and learnt label embeddings (Eq. 1 and 2)."""

    def __init__(self, wide: int, width: int, classes: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(wide, width, layers)
        self.texts = 1 if wide == width else 2
        self.labels = label_table(classes, width)

    def forward(self, *texts: Tensor) -> Anchored:
        return Anchored(self.projection(example_embedding(texts)), self.labels)

    def start(self, names: Tensor) -> None:
        """Initialise the labels with projections of the embeddings of their names (C, H).

        They are centred, because an untrained projection separates its inputs little.
        """
        init_from_names(self.labels, self(*[names] * self.texts).instances)


class FusedAnchors(LabelAnchors):
    """Label anchors with attention to the tokens most similar to any label (Eq. 9)."""

    def __init__(self, wide: int, width: int, classes: int, layers: int) -> None:
        super().__init__(wide, width, classes, layers)
        self.attention = LabelAttention()
        self.pooled_width = width

    def pool(self, hidden: Tensor, batch: Batch) -> Tensor:
        return self.attention(hidden, batch, self.labels)


def lacon(task: Task, settings: LaCon) -> Task:
    """Return a task with ICL' + LCL + weight LER (Eq. 7), predicting the nearest label (Eq. 8).

    LCL is measured from the lowest value that the batch's labels allow. This changes no gradient,
    but makes the term non-negative, as some combiners require.
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
        heads_of(width, settings.label_heads)  # raises before any file is read
        anchors = FusedAnchors if settings.fusion else LabelAnchors
        return anchors(example_width(task, width), width, classes, settings.projection_layers)

    kind = replace(task.kind, loss=loss, scores=scores, divergence=None)
    return replace(task, kind=kind, build_head=build_head, losses={}, compares_examples=True)


def projected(task: Task, settings: Projection) -> Task:
    """Return a task with cross-entropy after LaCon's projection head (Table 3, "BERT w/ g")."""
    classes = task.kind.classes
    assert classes is not None

    def build_head(width: int) -> nn.Module:
        return Projected(example_width(task, width), width, classes, settings.projection_layers)

    return replace(task, build_head=build_head, losses={})


class Projected(nn.Module):
    """Embeddings -> projection -> dropout -> logits (B, C)."""

    def __init__(self, wide: int, width: int, classes: int, layers: int) -> None:
        super().__init__()
        self.projection = perceptron(wide, width, layers)
        self.classifier = SoftmaxClassifier(width, classes, DROPOUT)

    def forward(self, *texts: Tensor) -> Tensor:
        return self.classifier(self.projection(example_embedding(texts)))


def lowest_label_centered(targets: Tensor, temperature: float) -> float:
    """Return a lower bound of LCL for a batch with these labels (B,).

    It has every positive at cosine 1 and every negative at -1:  |A(p)| (log |B(p)| - 2 /
    temperature), averaged over the labels present.
    """
    counts = targets.unique(return_counts=True)[1].double()
    if len(counts) < 2:
        return 0.0
    others = len(targets) - counts
    return float((counts * (others.log() - 2 / temperature)).mean())


def heads_of(width: int, wanted: int | None) -> int:
    """Return the number of slices of a vector.

    Raise SettingsError if it does not divide the width.
    """
    if wanted is None:
        return next(count for count in range(HEADS, 0, -1) if width % count == 0)
    if width % wanted:
        raise SettingsError(
            f"label_heads: expected a divisor of the embedding's width {width}, found {wanted}"
        )
    return wanted


def perceptron(wide: int, width: int, layers: int) -> nn.Module:
    """Return linear layers with ReLU between them; for 0 layers only a change of width, if any."""
    if not layers:
        return nn.Identity() if wide == width else nn.Linear(wide, width)
    sizes = [wide] + [width] * layers
    parts: list[nn.Module] = []
    for size, following in pairwise(sizes):
        parts += [nn.Linear(size, following), nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def example_width(task: Task, width: int) -> int:
    """Return the width of an example's embedding from that of a text's."""
    return width if task.vectors == 1 else 3 * width
