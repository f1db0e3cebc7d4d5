"""Classification tasks trained with contrastive terms beside cross-entropy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from losses import contrastive_objectives, ideal_points, supcon_loss
from tasks.base import Embeddings, Loss, Outputs, Task


def with_objective(
    task: Task,
    objective: str,
    temperature: float,
    weight: float,
    preference: tuple[float, float],
) -> Task:
    """A task whose losses are those of an objective; one without classes stays as it is.

    `scl`:  (1 - weight) CE + weight SupCon  (Gunel et al., 2021, Eq. 1). `ls`:  (1 - weight) CE +
    weight (r_1 pull + r_2 push)  (Moukafih et al., 2022, Eq. 4 to 6). `epo`: the three apart, for
    a combiner to weigh. Pull and push are counted from their ideal points.
    """
    if task.kind.classes is None:
        return task
    return replace(
        task, several=LOSSES[objective](task, temperature, weight, preference), in_batch=True
    )


def scl(
    task: Task, temperature: float, weight: float, preference: tuple[float, float]
) -> Mapping[str, Loss]:
    def loss(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
        contrast = supcon_loss(example_embedding(texts), targets, temperature)
        return (1 - weight) * task.kind.loss(outputs, targets) + weight * contrast

    return {"loss": loss}


def linear(
    task: Task, temperature: float, weight: float, preference: tuple[float, float]
) -> Mapping[str, Loss]:
    assert task.kind.classes is not None
    first, second = preference
    lowest = ideal_points(temperature, task.kind.classes)

    def loss(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
        pull, push = both(texts, targets, temperature)
        # No gradient changes; a combiner that wants losses of zero or more gets them.
        contrast = first * (pull - lowest[0]) + second * (push - lowest[1])
        return (1 - weight) * task.kind.loss(outputs, targets) + weight * contrast

    return {"loss": loss}


def apart(
    task: Task, temperature: float, weight: float, preference: tuple[float, float]
) -> Mapping[str, Loss]:
    assert task.kind.classes is not None
    lowest = ideal_points(temperature, task.kind.classes)

    def one(place: int) -> Loss:
        return lambda outputs, texts, targets: (
            both(texts, targets, temperature)[place] - lowest[place]
        )

    def cross_entropy(outputs: Outputs, texts: Embeddings, targets: Tensor) -> Tensor:
        return (1 - weight) * task.kind.loss(outputs, targets)  # the head's share, too

    return {"cross_entropy": cross_entropy, "pull": one(0), "push": one(1)}


Maker = Callable[[Task, float, float, tuple[float, float]], Mapping[str, Loss]]
LOSSES: dict[str, Maker] = {"scl": scl, "ls": linear, "epo": apart}


def both(texts: Embeddings, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Pull and push of a batch."""
    unit = F.normalize(example_embedding(texts), dim=-1)
    return contrastive_objectives(unit, targets, temperature)


def example_embedding(texts: Embeddings) -> Tensor:
    """One vector an example: its text's, or of a pair in two towers u, v and |u - v| in one."""
    if len(texts) == 1:
        return texts[0]
    u, v = texts
    return torch.cat([u, v, (u - v).abs()], dim=-1)
