"""Tasks and their kinds: source of examples, head, losses, scores and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from losses import corn_log_probabilities, corn_loss, squared_difference, symmetric_kl
from tasks.calibration import CLASSES, LABELS, NUMBERS, Calibrator
from tasks.labelled_files import Source
from tasks.metrics import MAIN_METRICS, METRICS, by_class, metric_function
from tasks.predictions import PredictionFile
from tasks.readers import Examples, Limit

Outputs = Any  # of a head: logits (B, C), values (B,), or other inputs of the kind's loss


@dataclass(frozen=True)
class Kind:
    """The functions from a head's outputs to a loss, scores, predictions and metrics.

    `loss(outputs, targets)` -> a scalar; `scores(outputs)` -> (B, C) probabilities or (B,) values,
    both float32; `predictions(scores)` -> (B,); `metrics(predictions, targets)` -> values by name.
    The metric `main_metric`, from `worst` to 1, selects the best epoch. `divergence(outputs,
    outputs)`, if defined, measures the distance of two predictions of the same examples. `classes`
    is the number of classes, if an example has one of them, and `labels` the number of labels, if
    an example may have several; `class_names` are their readable names. With several labels
    predictions and targets are (B, C). `logits(outputs)`, if defined, are those of the classes or
    labels, (B, C), whose cross-entropy is the loss. `calibrator` calibrates the scores; None if
    nothing does. `similarities`: the values are on a scale that the setting `similarity_scale`
    changes for the loss.
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
    labels: int | None = None
    calibrator: Calibrator | None = None
    logits: Callable[[Outputs], Tensor] | None = None
    similarities: bool = False

    @property
    def columns(self) -> int | None:
        """Return the number of probabilities of an example, or None for a single number."""
        return self.classes or self.labels

    def measure(self, scores: np.ndarray, targets: np.ndarray) -> dict[str, float]:
        """Return the metrics of the predictions from scores (B, C) or (B,)."""
        return self.metrics(self.predictions(scores), targets)

    def by_class(self, predictions: np.ndarray, targets: np.ndarray) -> dict[str, dict[str, float]]:
        """Return precision, recall, F1 and support of each class or label; none for numbers."""
        if self.columns is None:
            return {}
        return by_class(predictions, targets, self.class_names or range_names(self.columns))


def range_names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


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
        main_metric=MAIN_METRICS["classification"],
        worst=0.0,
        divergence=symmetric_kl,
        classes=classes,
        class_names=names,
        calibrator=CLASSES,
        logits=identity,
    )


def with_macro_f1(kind: Kind) -> Kind:
    """Return a kind of classes or labels with `macro_f1` among its metrics; others unchanged."""
    if kind.columns is None:
        return kind
    score = METRICS["macro_f1"].score
    return replace(
        kind,
        metrics=lambda found, true: {**kind.metrics(found, true), "macro_f1": score(found, true)},
    )


def smoothed(kind: Kind, share: float) -> Kind:
    """Return a classification kind whose targets are 1 - share plus share / C, elsewhere share / C.

    Szegedy et al. (2016), section 7. Raise ValueError for another loss than cross-entropy.
    """
    if kind.loss is not F.cross_entropy:
        raise ValueError("expected a task that is trained by cross-entropy")
    return replace(kind, loss=partial(F.cross_entropy, label_smoothing=share))


def corn(kind: Kind) -> Kind:
    """Return a classification kind of ordered classes with CORN on logits (B, C - 1)."""
    return replace(
        kind,
        loss=corn_loss,
        scores=lambda logits: corn_log_probabilities(logits).exp(),
        divergence=lambda logits, others: symmetric_kl(
            corn_log_probabilities(logits), corn_log_probabilities(others)
        ),
        logits=corn_log_probabilities,
    )


def ordinal(classes: int, names: tuple[str, ...] = ()) -> Kind:
    """Return a kind of ordered classes with CORN on logits (B, C - 1) and quadratic kappa."""
    return replace(
        corn(classification(classes, names=names)),
        metrics=metric_function("quadratic_kappa", "accuracy"),
        main_metric=MAIN_METRICS["ordinal"],
        worst=-1.0,
    )


def multi_label(labels: int, names: tuple[str, ...] = ()) -> Kind:
    """Return a kind with binary cross-entropy on logits (B, C), a label where its logit is above 0.

    Accuracy is the mean of the labels' accuracies, as in Göttingen's course; `micro_f1` selects the
    best epoch, since most labels of most examples are 0.
    """

    return Kind(
        loss=F.binary_cross_entropy_with_logits,
        scores=torch.sigmoid,
        predictions=lambda scores: (scores > 0.5).astype(np.int64),
        metrics=metric_function("accuracy", "micro_f1", "macro_f1", "matthews"),
        main_metric=MAIN_METRICS["multi-label"],
        worst=0.0,
        divergence=lambda logits, others: (
            labels * symmetric_kl(two_logits(logits), two_logits(others))
        ),
        class_names=names,
        labels=labels,
        calibrator=LABELS,
        logits=identity,
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
        main_metric=MAIN_METRICS["similarity"],
        worst=-1.0,
        divergence=lambda values, others: squared_difference(values / scale, others / scale),
        calibrator=NUMBERS,
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
        main_metric=MAIN_METRICS["regression"],
        worst=-1.0,
        divergence=squared_difference,
        calibrator=NUMBERS,
    )


def ranking() -> Kind:
    """Return a kind of ordered pairs, on differences of scores s(u) - s(v), (B,).

    The probability that the first text is better is sigmoid(s(u) - s(v)) (Bradley and Terry, 1952),
    and the loss its cross-entropy (RankNet; Burges et al., 2005, Eq. 3), which is
    -log sigmoid(s(u) - s(v)) for a first text that is better. Targets are 1, or 0 for a second text
    that is better. The score of a single text, sigmoid(s(u)), has the same order as s(u).
    """
    return Kind(
        loss=F.binary_cross_entropy_with_logits,
        scores=torch.sigmoid,
        predictions=identity,
        metrics=metric_function("order_accuracy"),
        main_metric=MAIN_METRICS["ranking"],
        worst=0.0,
        divergence=lambda logits, others: symmetric_kl(two_logits(logits), two_logits(others)),
    )


def on_scale(kind: Kind, scale: float) -> Kind:
    """Return a similarity kind with loss and divergence of the undivided values.

    Compared with other tasks' losses, an error on the scale from 0 to 5 (BEES, Eq. 4) weighs 25
    times as much as one on the scale from 0 to 1. Metrics and predictions are unchanged.
    """
    loss, divergence, factor = kind.loss, kind.divergence, scale**2
    assert divergence is not None, "similarities have a divergence"
    return replace(
        kind,
        loss=lambda values, targets: factor * loss(values, targets),
        divergence=lambda values, others: factor * divergence(values, others),
    )


Embeddings = tuple[Tensor, ...]  # one tensor (B, H) per text of an example
Loss = Callable[[Outputs, Embeddings, Tensor], Tensor]  # outputs, embeddings, targets -> scalar


@dataclass(frozen=True)
class Task:
    """One task of the shared encoder.

    `build_head(H)` returns a module from the embeddings of an example's texts to outputs. `output`
    is None for a task without prediction files. `losses` are named losses that replace the kind's
    loss; they take the head's outputs, the texts' embeddings and the targets. `compares_examples`
    marks losses that compare the examples of a batch: they are not a mean over examples, and a
    batch is not split. `texts` is the number of texts of an example; `joint` marks pairs that are
    encoded as one sequence with one embedding; `single` those whose head also scores one text, for
    predictions. `loss_switch` is a number of epochs and the loss
    that replaces the task's only loss after them, so that the number of gradients stays the same.
    An `auxiliary` task trains with the others, but selects no epoch and writes no
    predictions.
    `extend(source, others)` returns a source with further training examples, none of them in dev or
    test of the source or of `others`; it is applied last, to the source of a run's splits.
    `shares_rows` is a key that the tasks of one table have in common: an example with the same id
    is the same row.
    """

    name: str
    kind: Kind
    source: Source
    build_head: Callable[[int], nn.Module]
    output: PredictionFile | None = None
    losses: Mapping[str, Loss] = field(default_factory=dict)
    compares_examples: bool = False
    joint: bool = False
    texts: int = 1
    single: bool = False
    loss_switch: tuple[int, Loss] | None = None
    auxiliary: bool = False
    extend: Callable[[Source, tuple[Source, ...]], Source] | None = None
    shares_rows: str | None = None

    def __post_init__(self) -> None:
        assert self.loss_switch is None or len(self.losses) < 2, "loss_switch: expected one loss"

    @property
    def vectors(self) -> int:
        """Return the number of embeddings of an example."""
        return 1 if self.joint else self.texts

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the numbers of texts from which the task predicts, the smallest first."""
        return (1, self.texts) if self.single else (self.texts,)

    @property
    def objectives(self) -> tuple[str, ...]:
        """Return the names of the objectives: the task's name, or one name per loss."""
        names = tuple(self.losses)
        return (self.name,) if len(names) < 2 else tuple(f"{self.name}/{n}" for n in names)

    def in_epoch(self, epoch: int) -> Task:
        """Return the task with the losses of an epoch, counted from 1."""
        if self.loss_switch is None or epoch <= self.loss_switch[0]:
            return self
        return replace(self, losses={self.name: self.loss_switch[1]})

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """Return the examples of `train`, `dev` or `test`, all or `limit` drawn at random.

        Test examples may have no labels.
        """
        return self.source.read(folder, split, limit)

    def compute_losses(
        self, outputs: Outputs, texts: Embeddings, targets: Tensor
    ) -> dict[str, Tensor]:
        """Return the scalar losses of a batch by objective."""
        functions = tuple(self.losses.values()) or (output_loss(self.kind.loss),)
        values = [loss(outputs, texts, targets) for loss in functions]
        return dict(zip(self.objectives, values, strict=True))

    def scores(self, head: nn.Module, texts: Embeddings) -> Tensor:
        """Return class probabilities (B, C) or similarities (B,)."""
        return self.kind.scores(head(*texts))


def output_loss(loss: Callable[[Outputs, Tensor], Tensor]) -> Loss:
    """Return a loss of the head's outputs in the form of `Task.losses`."""
    return lambda outputs, texts, targets: loss(outputs, targets)


def embedding_loss(loss: Callable[[Embeddings, Tensor], Tensor]) -> Loss:
    """Return a loss of the texts' embeddings in the form of `Task.losses`."""
    return lambda outputs, texts, targets: loss(texts, targets)
