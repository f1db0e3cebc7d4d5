"""A kind of tasks: loss of a head's outputs, scores, predictions and metrics."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.later import Tensor
from tasks.metrics import by_class, worst_value

Outputs = Any  # of a head: logits (B, C), values (B,), or other inputs of the kind's loss


@dataclass(frozen=True)
class Kind:
    """The functions from a head's outputs to a loss, scores, predictions and metrics.

    `loss(outputs, targets)` -> a scalar; `scores(outputs)` -> (B, C) probabilities or (B,) values,
    both float32; `predictions(scores)` -> (B,); `metrics(predictions, targets)` -> values by name.
    The metric `main_metric` selects the best epoch. `divergence(outputs, outputs)`, if defined,
    measures the distance of two predictions of the same examples. `classes` is the number of
    classes, if an example has one of them, and `labels` the number of labels, if an example may
    have several; `class_names` are their readable names. With several labels predictions and
    targets are (B, C). `similarities`: the values are on a scale that the setting
    `similarity_scale` changes for the loss.
    """

    loss: Callable[[Outputs, Tensor], Tensor]
    scores: Callable[[Outputs], Tensor]
    predictions: Callable[[np.ndarray], np.ndarray]
    metrics: Callable[[np.ndarray, np.ndarray], dict[str, float]]
    main_metric: str
    divergence: Callable[[Outputs, Outputs], Tensor] | None = None
    classes: int | None = None
    class_names: tuple[str, ...] = ()
    labels: int | None = None
    similarities: bool = False

    def __post_init__(self) -> None:
        if math.isinf(worst_value(self.main_metric)):  # it scales the score that selects an epoch
            expected = "expected a metric with a worst value"
            raise ValueError(f"main_metric: {expected}, found {self.main_metric}")

    @property
    def columns(self) -> int | None:
        """Return the number of probabilities of an example, or None for a single number."""
        return self.classes or self.labels

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the classes or labels, or their numbers; none for a single number."""
        return self.class_names or tuple(map(str, range(self.columns or 0)))

    @property
    def metric_names(self) -> tuple[str, ...]:
        """Return the names of the metrics."""
        two = np.arange(2.0)
        return tuple(self.metrics(two, two))

    def measure(self, scores: np.ndarray, targets: np.ndarray) -> dict[str, float]:
        """Return the metrics of the predictions from scores (B, C) or (B,)."""
        return self.metrics(self.predictions(scores), targets)

    def by_class(self, predictions: np.ndarray, targets: np.ndarray) -> dict[str, dict[str, float]]:
        """Return precision, recall, F1 and support of each class or label; none for numbers."""
        if self.columns is None:
            return {}
        return by_class(predictions, targets, self.names)
