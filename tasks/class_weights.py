"""Balanced class weights: a task's loss with weights from the numbers of training examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from common.text import first_names
from losses import balanced_weights, weighted_binary_cross_entropy, weighted_cross_entropy
from tasks.base import Task, output_loss
from tasks.kind import Kind, Outputs


def with_class_weights(task: Task, targets: np.ndarray) -> Task:
    """Return a task whose loss weights its classes or labels; its kind does not change.

    `targets` are those of its training examples, (n,) or (n, L). Raise ValueError for a task that
    is not trained by the cross-entropy of its classes or labels.
    """
    plain = {
        F.cross_entropy: weighted_cross_entropy,
        F.binary_cross_entropy_with_logits: weighted_binary_cross_entropy,
    }
    weighted = plain.get(task.kind.loss)
    if weighted is None or task.losses:
        raise ValueError("expected a task that is trained by cross-entropy")
    weights = weights_of(task.kind, targets)

    def loss(outputs: Outputs, found: Tensor) -> Tensor:
        return weighted(outputs, found, weights.to(outputs))

    return replace(task, losses={task.name: output_loss(loss)})


def weights_of(kind: Kind, targets: np.ndarray) -> Tensor:
    """Return the weights of the classes (C,), or those of examples with a label (L,), in float64.

    With several labels, each is a problem of two classes. The weight of the examples that have the
    label is relative to the others.
    """
    if kind.labels is None:
        assert kind.classes is not None, "a kind of classes"
        counts = np.bincount(targets.astype(np.int64), minlength=kind.classes)
        return balanced_weights(torch.from_numpy(counts).double())
    having = torch.from_numpy(targets).double().sum(0)
    weights = balanced_weights(torch.stack([len(targets) - having, having], -1))
    return weights[:, 1] / weights[:, 0]


def weights_line(task: Task, targets: np.ndarray) -> str:
    """Return the weights of a task's classes or labels in one line."""
    kind = task.kind
    several = "labels, relative to their absence" if kind.labels is not None else "classes"
    weights = weights_of(kind, targets).tolist()
    pairs = [f"{name} {weight:.3g}" for name, weight in zip(kind.names, weights, strict=True)]
    return f"weights of {several}: {first_names(pairs, 12)}"
