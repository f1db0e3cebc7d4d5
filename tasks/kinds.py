"""How the outputs of a head become a loss, scores, predictions and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from losses import squared_difference, symmetric_kl
from tasks.metrics import MAIN_METRICS, measured

Outputs = Any  # of a head: logits (B, C), values (B,), or what the loss of its kind wants


@dataclass(frozen=True)
class Kind:
    """How the outputs of a head become a loss, scores, predictions and metrics.

    `loss(outputs, targets)` -> a scalar; `scores(outputs)` -> (B, C) probabilities or (B,) values,
    both float32; `predictions(scores)` -> (B,);
    `metrics(predictions, targets)` -> named figures, of which `main_metric`, at worst `worst` and
    at best 1, selects the best epoch. `divergence(outputs, outputs)` says how far two predictions
    of the same examples lie apart, where that means something; `classes` how many there are, where
    there are any, `class_names` what people call them.
    """

    loss: Callable[[Outputs, Tensor], Tensor]
    scores: Callable[[Outputs], Tensor]
    predictions: Callable[[np.ndarray], np.ndarray]
    metrics: Callable[[np.ndarray, np.ndarray], dict[str, float]]
    main_metric: str
    worst: float
    divergence: Callable[[Outputs, Outputs], Tensor] | None = None
    classes: int | None = None
    class_names: tuple[str, ...] = ()

    def measure(self, scores: np.ndarray, targets: np.ndarray) -> dict[str, float]:
        """The metrics of what is predicted by scores (B, C) or (B,)."""
        return self.metrics(self.predictions(scores), targets)


def argmax(scores: np.ndarray) -> np.ndarray:
    return scores.argmax(1)


def identity(scores: np.ndarray) -> np.ndarray:
    return scores


def classification(classes: int, matthews: bool = False, names: tuple[str, ...] = ()) -> Kind:
    """Cross-entropy on logits (B, C); accuracy, and F1 of class 1 of two or averaged over more.

    With `matthews` also Matthews' correlation.
    """
    metrics = ["accuracy", "f1" if classes == 2 else "macro_f1"]
    metrics += ["matthews"] if matthews else []

    return Kind(
        loss=F.cross_entropy,
        scores=lambda logits: logits.softmax(-1),
        predictions=argmax,
        metrics=measured(*metrics),
        main_metric=MAIN_METRICS["classification"],
        worst=0.0,
        divergence=symmetric_kl,
        classes=classes,
        class_names=names,
    )


def similarity(scale: float) -> Kind:
    """Squared error of values (B,) from 0 to `scale`, both divided by `scale`; see `on_scale`."""
    return Kind(
        loss=lambda values, targets: F.mse_loss(values / scale, targets / scale),
        scores=lambda values: values,
        predictions=identity,
        metrics=measured("pearson", "spearman"),
        main_metric=MAIN_METRICS["similarity"],
        worst=-1.0,
        divergence=lambda values, others: squared_difference(values / scale, others / scale),
    )


def on_scale(kind: Kind, scale: float) -> Kind:
    """Similarity with the squared error, and the divergence, of values from 0 to `scale`.

    Beside other tasks' losses an error on the scale from 0 to 5 (BEES, Eq. 4) weighs 25 times as
    much as one of similarities from 0 to 1. Metrics and predictions are the same.
    """
    loss, divergence, factor = kind.loss, kind.divergence, scale**2
    assert divergence is not None, "similarities can be compared"
    return replace(
        kind,
        loss=lambda values, targets: factor * loss(values, targets),
        divergence=lambda values, others: factor * divergence(values, others),
    )
