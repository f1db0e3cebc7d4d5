"""The kinds of tasks: loss of a head's outputs, scores, predictions and metrics."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from common.later import F, Tensor, torch
from losses import squared_difference, symmetric_kl
from tasks.metrics import metric_function

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
        return tuple(self.metrics(np.arange(2.0), np.arange(2.0)))

    def measure(self, scores: np.ndarray, targets: np.ndarray) -> dict[str, float]:
        """Return the metrics of the predictions from scores (B, C) or (B,), where labels exist."""
        known = known_rows(targets)
        return self.metrics(self.predictions(scores[known]), targets[known])


def known_rows(targets: np.ndarray) -> np.ndarray:
    """Return which targets (n,) or (n, L) of a test file are there, not blank."""
    known = targets >= 0 if targets.dtype.kind == "i" else np.isfinite(targets)
    return known if known.ndim == 1 else np.all(known, axis=1)


def classification(classes: int, matthews: bool = False, names: tuple[str, ...] = ()) -> Kind:
    """Return a kind with cross-entropy on logits (B, C), accuracy, F1 and Matthews' correlation."""
    metrics = ["accuracy", "f1" if classes == 2 else "macro_f1", *["matthews"] * matthews]
    return Kind(
        loss=F.cross_entropy,
        scores=lambda logits: logits.softmax(-1),
        predictions=lambda scores: scores.argmax(1),
        metrics=metric_function(*metrics),
        main_metric="accuracy",
        divergence=symmetric_kl,
        classes=classes,
        class_names=names,
    )


def multi_label(labels: int, names: tuple[str, ...] = ()) -> Kind:
    """Return a kind with binary cross-entropy on logits (B, C), a label where its logit is above 0.

    As most labels of most examples are 0, `micro_f1` selects the best epoch.
    """

    def two_logits(logits: Tensor) -> Tensor:  # of no and yes, for each logit of yes: (B C, 2)
        return torch.stack([torch.zeros_like(logits), logits], -1).flatten(0, -2)

    return Kind(
        loss=F.binary_cross_entropy_with_logits,
        scores=torch.sigmoid,
        predictions=lambda scores: (scores > 0.5).astype(np.int64),
        metrics=metric_function("micro_f1", "macro_f1", "accuracy", "matthews"),
        main_metric="micro_f1",
        divergence=lambda logits, others: (
            labels * symmetric_kl(two_logits(logits), two_logits(others))
        ),
        class_names=names,
        labels=labels,
    )


def similarity(scale: float) -> Kind:
    """Return a kind with the squared error of values (B,), from 0 to `scale`, over `scale`^2."""
    return Kind(
        loss=lambda values, targets: F.mse_loss(values / scale, targets / scale),
        scores=lambda values: values,
        predictions=lambda values: values,
        metrics=metric_function("pearson", "spearman"),
        main_metric="pearson",
        divergence=lambda values, others: squared_difference(values / scale, others / scale),
        similarities=True,
    )


def on_scale(kind: Kind, scale: float) -> Kind:
    """Return a similarity kind with loss and divergence on another scale than from 0 to 1."""
    divergence, factor = kind.divergence, scale**2  # 25 on the scale of BEES, Figure 1
    assert divergence is not None, "similarities have a divergence"
    return replace(
        kind,
        loss=lambda values, targets: factor * kind.loss(values, targets),
        divergence=lambda values, others: factor * divergence(values, others),
    )


def regression(mean: float, deviation: float) -> Kind:
    """Return a kind with the squared error of outputs (B, 1) from (number - mean) / deviation.

    Scores, predictions and targets (B,) are on the scale of the task's files.
    """
    return Kind(
        loss=lambda outputs, targets: F.mse_loss(outputs.squeeze(-1), (targets - mean) / deviation),
        scores=lambda outputs: outputs.squeeze(-1) * deviation + mean,
        predictions=lambda values: values,
        metrics=metric_function("pearson", "spearman", "mae"),
        main_metric="pearson",
        divergence=squared_difference,
    )
