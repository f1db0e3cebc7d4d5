"""Losses for classes, or labels, with very different numbers of training examples.

No torch is imported at module level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from common.text import first_names

if TYPE_CHECKING:
    from torch import Tensor

    from tasks.base import Task
    from tasks.kinds import Kind, Outputs

Weighting = Literal["balanced", "effective"]


class Imbalance(NamedTuple):
    """How the loss of a task is changed for imbalanced classes.

    `weights` are balanced, effective (with `beta`), or given by the name of a class, 1 for the
    others. `gamma` is that of the focal loss, `tau` that of logit adjustment; 0 means neither.
    """

    weights: Weighting | Mapping[str, float] | None
    beta: float
    gamma: float = 0.0
    tau: float = 0.0


def with_imbalance(task: Task, how: Imbalance, targets: np.ndarray) -> Task:
    """Return a task with the loss for imbalanced classes; its kind does not change.

    `targets` are those of its training examples, (n,) or (n, L). Raise ValueError for a task that
    is not trained by the cross-entropy of its classes or labels.
    """
    from losses import (
        binary_logit_adjusted_loss,
        focal_loss,
        logit_adjusted_loss,
        sigmoid_focal_loss,
        weighted_binary_cross_entropy,
        weighted_cross_entropy,
    )
    from tasks.base import output_loss

    kind = task.kind
    logits_of = kind.logits
    if logits_of is None or task.losses:
        raise ValueError("expected a task that is trained by cross-entropy")
    counts = training_counts(kind, targets)
    weights, priors = weights_of(kind, how, counts), priors_of(kind, counts)
    several = kind.labels is not None
    weighted = weighted_binary_cross_entropy if several else weighted_cross_entropy
    focal = sigmoid_focal_loss if several else focal_loss
    adjusted = binary_logit_adjusted_loss if several else logit_adjusted_loss

    def loss(outputs: Outputs, found: Tensor) -> Tensor:
        logits = logits_of(outputs)
        if how.tau:
            return adjusted(logits, found, priors.to(logits), how.tau)
        if how.gamma:
            return focal(logits, found, how.gamma, weights.to(logits))
        return weighted(logits, found, weights.to(logits))

    return replace(task, losses={task.name: output_loss(loss)})


def training_counts(kind: Kind, targets: np.ndarray) -> Tensor:
    """Return numbers of examples in float64.

    They are those of each class (C,), or those without and with each label (L, 2).
    """
    import torch

    if kind.labels is None:
        assert kind.classes is not None
        return torch.from_numpy(
            np.bincount(targets.astype(np.int64), minlength=kind.classes)
        ).double()
    having = torch.from_numpy(targets).double().sum(0)
    return torch.stack([len(targets) - having, having], -1)


def weights_of(kind: Kind, how: Imbalance, counts: Tensor) -> Tensor:
    """Return the weights of the classes (C,), or those of examples with a label (L,), in float64.

    With several labels, each is a problem of two classes. The weight of the examples that have the
    label is relative to the others.
    """
    import torch

    from losses import balanced_weights, effective_weights

    if how.weights is None:
        return counts.new_ones(len(counts))
    if isinstance(how.weights, Mapping):
        given = [how.weights.get(name, 1.0) for name in kind.class_names]
        return torch.tensor(given, dtype=torch.float64)
    balanced = how.weights == "balanced"
    weights = balanced_weights(counts) if balanced else effective_weights(counts, how.beta)
    return weights if kind.labels is None else weights[:, 1] / weights[:, 0]


def priors_of(kind: Kind, counts: Tensor) -> Tensor:
    """Return the share of examples of each class (C,), or with each label (L,), in float64.

    No examples count as half an example, whose logarithm is finite.
    """
    counts = counts.clamp(min=0.5)
    shares = counts / counts.sum(-1, keepdim=True)
    return shares if kind.labels is None else shares[:, 1]


def weights_line(task: Task, how: Imbalance, targets: np.ndarray) -> str:
    """Return the weights of a task's classes or labels in one line."""

    kind = task.kind
    weights = weights_of(kind, how, training_counts(kind, targets)).tolist()
    several = "labels, relative to their absence" if kind.labels is not None else "classes"
    pairs = [f"{name} {weight:.3g}" for name, weight in zip(kind.names, weights, strict=True)]
    return f"weights of {several}: {first_names(pairs, 12)}"
