"""Supervised contrastive pre-training on the classes of a task: SuperLoss and its rivals.

Moukafih, Sbihi, Ghogho and Smaili (2023): "SuperConText: Supervised Contrastive Learning Framework
for Textual representations". Batches hold as many examples of each class; what is learnt is judged
by logistic regression on frozen embeddings (`probe.py`) or by fine-tuning from the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from losses import every_npair_loss, supcon_loss, super_loss, triplet_loss
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from tasks.base import Task, of_outputs
from tasks.kinds import Kind
from tasks.readers import drawn

OBJECTIVES = ("superloss", "supcon", "class-triplet", "npair")
PROJECTED = 512  # width of the projection (section IV.C)
NEIGHBOURS, MOST = 10, 5000
ClassLoss = Callable[[Tensor, Tensor], Tensor]  # embeddings (B, H), classes (B,) -> a scalar


class ProjectionHead(nn.Module):
    """Embeddings (B, H); in training through a projection that is dropped afterwards (B, 512)."""

    def __init__(self, width: int, kind: str) -> None:
        super().__init__()
        self.projection = HEADS[kind](width)

    def forward(self, embedding: Tensor) -> Tensor:
        return self.projection(embedding) if self.training else embedding


HEADS: dict[str, Callable[[int], nn.Module]] = {
    "none": lambda width: nn.Identity(),
    "linear": lambda width: nn.Linear(width, PROJECTED, bias=False),
    "nonlinear": lambda width: nn.Sequential(
        nn.Linear(width, width, bias=False), nn.ReLU(), nn.Linear(width, PROJECTED, bias=False)
    ),
}


def class_tasks(config: RunConfig) -> dict[str, Task]:
    """The tasks of a configuration with the objective in the place of their losses.

    They are named by both: their dev figures are others than the tasks' own.
    """
    tasks = plain_tasks(config).values()
    return {one.name: one for one in (contrasted(task, config) for task in tasks)}


def contrasted(task: Task, config: RunConfig) -> Task:
    """A task of single texts with classes whose examples are pulled together class by class."""
    first, later = losses_of(config)
    return replace(
        task,
        name=f"{task.name}-{config.objective}",
        kind=embeddings_of_classes(first, task.kind.classes),
        build_head=partial(ProjectionHead, kind=config.projection_head),
        output=None,
        several={},
        in_batch=True,
        later=None if later is None else (config.hard_after, of_outputs(later)),
    )


def losses_of(config: RunConfig) -> tuple[ClassLoss, ClassLoss | None]:
    """The loss of an objective, and the one with hard negatives that follows it."""
    temperature = config.contrast_temperature
    hard: dict[str, Any] = dict(config.hard_negatives)

    def superloss(embeddings: Tensor, classes: Tensor, **hard: Any) -> Tensor:
        return super_loss(
            F.normalize(embeddings, dim=-1),
            classes,
            temperature,
            config.super_loss,
            positives=config.positives,
            negatives=config.negatives,
            **hard,
        )

    rivals: dict[str | None, ClassLoss] = {
        "supcon": lambda embeddings, classes: supcon_loss(embeddings, classes, temperature),
        "class-triplet": lambda embeddings, classes: triplet_loss(
            embeddings, classes, config.margin
        ),
        # Inner products, as the paper of the loss has them: cosines would be too near each other.
        "npair": partial(every_npair_loss, normalize=False),
    }
    if config.objective != "superloss":
        return rivals[config.objective], None
    with_hard = partial(superloss, **hard)
    if config.hard_after:
        return superloss, with_hard
    return with_hard, None


def embeddings_of_classes(loss: ClassLoss, classes: int | None) -> Kind:
    """Scores (B, H) are embeddings of unit length; the neighbours' classes select the epoch."""
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
    """Share of examples (n, H) that their nearest neighbours, ten at most, vote into their class.

    No example is its own neighbour. Of classes with as many votes the lowest counts. Of more than
    5,000 examples as many are looked at, always the same.
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
