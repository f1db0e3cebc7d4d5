"""Changes of a task's cross-entropy: smoothed labels, and balanced weights of classes.

The weights are those of King and Zeng (2001), "Logistic Regression in Rare Events Data", and of
scikit-learn.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from common.errors import RunError
from common.later import F, Tensor, torch
from common.text import first_names
from tasks.base import Embeddings, Task
from tasks.kinds import Kind, Outputs


def with_smoothing(task: Task, share: float) -> Task:
    """Return a task whose targets are 1 - share plus share / C, elsewhere share / C.

    Szegedy et al. (2016), section 7.
    """
    loss = partial(F.cross_entropy, label_smoothing=share)
    return replace(task, kind=replace(task.kind, loss=loss))


def with_class_weights(task: Task, targets: np.ndarray) -> tuple[Task, str]:
    """Return a task whose loss weights its classes, and a line with the weights.

    `targets` (n,) are those of its training examples. The kind does not change. The loss is a mean
    over examples, not over weights as in `F.cross_entropy`, so that the gradient of a batch is the
    mean of those of its parts. Raise RunError for a task that is not trained by cross-entropy.
    """
    if task.losses or task.kind.loss is not F.cross_entropy:
        line = "class_weights needs a task that is trained by cross-entropy"
        raise RunError(f"{task.name}: {line}")
    weights = balanced_weights(task.kind, targets)

    def loss(outputs: Outputs, texts: Embeddings, found: Tensor) -> Tensor:
        given = torch.from_numpy(weights).to(outputs)
        return F.cross_entropy(outputs, found, given, reduction="none").mean()

    pairs = [f"{name} {weight:.3g}" for name, weight in zip(task.kind.names, weights, strict=True)]
    line = f"weights of classes: {first_names(pairs, 12)}"
    return replace(task, losses={task.name: loss}), line


def balanced_weights(kind: Kind, targets: np.ndarray) -> np.ndarray:
    """Return n / (C n_c) of each class, in float64.

    C counts the classes that have examples. A class without examples has weight 1.
    """
    counts = np.bincount(targets.astype(np.int64), minlength=kind.classes or 0)
    return np.where(counts > 0, len(targets) / (counts > 0).sum() / np.maximum(counts, 1), 1.0)
