"""The kinds of tasks: classes, several labels, similarities and other numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from losses import squared_difference, symmetric_kl
from tasks.kind import Kind
from tasks.metrics import METRICS, metric_function


def argmax(scores: np.ndarray) -> np.ndarray:
    return scores.argmax(1)


def identity(values: Any) -> Any:
    return values


def classification(classes: int, matthews: bool = False, names: tuple[str, ...] = ()) -> Kind:
    """Return a kind with cross-entropy on logits (B, C), accuracy and F1.

    F1 is that of class 1 for two classes, else the mean. `matthews` adds Matthews' correlation.
    """
    metrics = ["accuracy", "f1" if classes == 2 else "macro_f1"]
    metrics += ["matthews"] if matthews else []

    return Kind(
        loss=F.cross_entropy,
        scores=lambda logits: logits.softmax(-1),
        predictions=argmax,
        metrics=metric_function(*metrics),
        main_metric="accuracy",
        divergence=symmetric_kl,
        classes=classes,
        class_names=names,
    )


def with_main_metric(kind: Kind, metric: str) -> Kind | None:
    """Return a kind with `metric` as its main metric; None if the kind does not have it.

    All kinds of classes or labels have `macro_f1`.
    """
    if metric in kind.metric_names:
        return replace(kind, main_metric=metric)
    if metric != "macro_f1" or kind.columns is None:
        return None
    score = METRICS["macro_f1"].score
    return replace(
        kind,
        metrics=lambda found, true: {**kind.metrics(found, true), "macro_f1": score(found, true)},
        main_metric=metric,
    )


def smoothed(kind: Kind, share: float) -> Kind:
    """Return a classification kind whose targets are 1 - share plus share / C, elsewhere share / C.

    Szegedy et al. (2016), section 7. Raise ValueError for another loss than cross-entropy.
    """
    if kind.loss is not F.cross_entropy:
        raise ValueError("expected a task that is trained by cross-entropy")
    return replace(kind, loss=partial(F.cross_entropy, label_smoothing=share))


def multi_label(labels: int, names: tuple[str, ...] = ()) -> Kind:
    """Return a kind with binary cross-entropy on logits (B, C), a label where its logit is above 0.

    Accuracy is the mean of the labels' accuracies, as in Göttingen's course; `micro_f1` selects the
    best epoch, since most labels of most examples are 0.
    """

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


def two_logits(logits: Tensor) -> Tensor:
    """Return logits (N, 2) of no and yes for logits of yes, of any shape with N values."""
    return torch.stack([torch.zeros_like(logits), logits], -1).flatten(0, -2)


def similarity(scale: float) -> Kind:
    """Return a kind with the squared error of values (B,), from 0 to `scale`, over `scale`^2."""
    return Kind(
        loss=lambda values, targets: F.mse_loss(values / scale, targets / scale),
        scores=lambda values: values,
        predictions=identity,
        metrics=metric_function("pearson", "spearman"),
        main_metric="pearson",
        divergence=lambda values, others: squared_difference(values / scale, others / scale),
        similarities=True,
    )


def regression(mean: float, deviation: float) -> Kind:
    """Return a kind with the squared error of standardised numbers (B,), and their correlations.

    A head's output is (number - mean) / deviation; scores, predictions and targets are on the scale
    of the task's files.
    """
    return Kind(
        loss=lambda outputs, targets: F.mse_loss(outputs, (targets - mean) / deviation),
        scores=lambda outputs: outputs * deviation + mean,
        predictions=identity,
        metrics=metric_function("pearson", "spearman", "mae"),
        main_metric="pearson",
        divergence=squared_difference,
    )


def on_scale(kind: Kind, scale: float) -> Kind:
    """Return a similarity kind with loss and divergence of the undivided values.

    Compared with other tasks' losses, an error on the scale from 0 to 5 (BEES, Figure 1) weighs 25
    times as much as one on the scale from 0 to 1. Metrics and predictions are unchanged.
    """
    loss, divergence, factor = kind.loss, kind.divergence, scale**2
    assert divergence is not None, "similarities have a divergence"
    return replace(
        kind,
        loss=lambda values, targets: factor * loss(values, targets),
        divergence=lambda values, others: factor * divergence(values, others),
    )
