"""Supervised contrastive pre-training on the classes of a task: SuperLoss and other losses.

Moukafih, Sbihi, Ghogho and Smaili (2023): "SuperConText: Supervised Contrastive Learning Framework
for Textual representations". Batches are class-balanced by default. The encoder is evaluated by
logistic regression on frozen embeddings (`probe.py`) or by fine-tuning from the run.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from pretrain.projection_heads import ProjectionHead
from tasks.base import Kind, Task, output_loss
from tasks.readers import drawn

if TYPE_CHECKING:
    from pretrain.objectives import ClassLoss, ClassObjective

NEIGHBOURS, MOST = 10, 5000


class Projected(nn.Module):
    """Embeddings (B, H); only in training, their projection, (B, 512) unless it has no layer."""

    def __init__(self, width: int, head: ProjectionHead) -> None:
        super().__init__()
        self.projection = head.build(width)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.projection(embedding) if self.training else embedding


def class_tasks(objective: ClassObjective, config: RunConfig) -> dict[str, Task]:
    """Return the tasks of a configuration, trained by the objective instead of their own losses.

    The new names contain the objective's, because the dev metrics differ from the tasks' own.
    """
    tasks = plain_tasks(config).values()
    head = config.projection_head
    return {one.name: one for one in (contrasted(task, objective, head) for task in tasks)}


def contrasted(task: Task, objective: ClassObjective, head: ProjectionHead) -> Task:
    """Return a single-text classification task trained by a contrastive objective."""
    first, later = objective.losses()
    epochs = getattr(objective, "hard_after", 0)
    return replace(
        task,
        name=f"{task.name}-{objective.name}",
        kind=embeddings_of_classes(first, task.kind.classes),
        build_head=partial(Projected, head=head),
        output=None,
        several={},
        in_batch=True,
        later=None if later is None else (epochs, output_loss(later)),
    )


def embeddings_of_classes(loss: ClassLoss, classes: int | None) -> Kind:
    """Return a kind whose scores (B, H) are unit embeddings; k-NN accuracy selects the epoch."""
    return Kind(
        loss=loss,
        scores=partial(F.normalize, dim=-1),
        predictions=lambda scores: scores,
        metrics=neighbour_metrics,
        main_metric="knn_accuracy",
        worst=0.0,
        classes=classes,
    )


def neighbour_metrics(embeddings: np.ndarray, classes: np.ndarray) -> dict[str, float]:
    """Return the accuracy of a vote of the nearest neighbours, ten at most, on examples (n, H).

    An example is not its own neighbour. On a tie the lowest class wins. Of more than 5,000
    examples, 5,000 are drawn, always the same.
    """
    from sklearn.neighbors import NearestNeighbors

    if len(embeddings) > MOST:
        rows = drawn(len(embeddings), MOST)
        embeddings, classes = embeddings[rows], classes[rows]
    count = min(NEIGHBOURS, len(embeddings) - 1)
    if count < 1:
        return {"knn_accuracy": 0.0}
    search = NearestNeighbors(n_neighbors=count, metric="cosine").fit(embeddings)
    votes = classes[search.kneighbors(return_distance=False)].astype(np.int64)
    counts = (votes[:, :, None] == np.arange(classes.max() + 1)).sum(1)
    return {"knn_accuracy": float((counts.argmax(1) == classes).mean())}
