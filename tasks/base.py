"""What a task is: where its files are, what its head computes, how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from losses import squared_difference, symmetric_kl
from tasks.labelled_files import Source
from tasks.metrics import MAIN_METRICS, measured
from tasks.predictions import PredictionFile
from tasks.readers import Examples, Limit

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


Embeddings = tuple[Tensor, ...]  # one (B, H) tensor a text of the examples
Loss = Callable[[Outputs, Embeddings, Tensor], Tensor]  # outputs, embeddings, targets -> scalar


@dataclass(frozen=True)
class Task:
    """One task of the shared encoder.

    `build_head(H)` makes a module from the embeddings of an example's texts to outputs; `output` is
    None for a task whose predictions nobody asks for. `several` are named losses where they are not
    its kind's alone: of the head's outputs, the texts' embeddings and the targets.
    `in_batch` says that losses compare the examples of a batch: they are not a mean over examples,
    and a batch goes through them whole. An example has so many `texts`; `joint` says that both of
    a pair share a sequence, and one embedding. `later` is a number of epochs, and the
    loss that takes over after them, of a task with one: gradient rows keep their places.
    """

    name: str
    kind: Kind
    source: Source
    build_head: Callable[[int], nn.Module]
    output: PredictionFile | None = None
    several: Mapping[str, Loss] = field(default_factory=dict)
    in_batch: bool = False
    joint: bool = False
    texts: int = 1
    later: tuple[int, Loss] | None = None

    def __post_init__(self) -> None:
        assert self.later is None or len(self.several) < 2, "one loss takes over from one"

    @property
    def vectors(self) -> int:
        """Embeddings of an example."""
        return 1 if self.joint else self.texts

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of what is minimised: the task's, or one a loss where it has several."""
        names = tuple(self.several)
        return (self.name,) if len(names) < 2 else tuple(f"{self.name}/{n}" for n in names)

    def in_epoch(self, epoch: int) -> Task:
        """The task with the losses of an epoch, from 1."""
        if self.later is None or epoch <= self.later[0]:
            return self
        return replace(self, several={self.name: self.later[1]})

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """Examples of `train`, `dev` or `test`, all or `limit` drawn at random.

        Those of `test` may have no labels.
        """
        return self.source.read(folder, split, limit)

    def losses(self, outputs: Outputs, texts: Embeddings, targets: Tensor) -> dict[str, Tensor]:
        """Scalar losses of a batch, from the head's outputs and the embeddings, by objective."""
        functions = tuple(self.several.values()) or (of_outputs(self.kind.loss),)
        values = [loss(outputs, texts, targets) for loss in functions]
        return dict(zip(self.objectives, values, strict=True))

    def scores(self, head: nn.Module, texts: Embeddings) -> Tensor:
        """(B, C) class probabilities or (B,) similarities."""
        return self.kind.scores(head(*texts))


def of_outputs(loss: Callable[[Outputs, Tensor], Tensor]) -> Loss:
    """A kind's loss among several of a task."""
    return lambda outputs, texts, targets: loss(outputs, targets)


def of_texts(loss: Callable[[Embeddings, Tensor], Tensor]) -> Loss:
    """A loss of the embeddings alone among several of a task."""
    return lambda outputs, texts, targets: loss(texts, targets)
