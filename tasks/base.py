"""What a task is: where its files are, what its head computes, how it is scored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from losses import squared_difference, symmetric_kl
from tasks.metrics import measured
from tasks.predictions import PredictionFile
from tasks.readers import NO_AGREEMENT, Examples, Row, example_rows, gathered

Embeddings = tuple[Tensor, ...]  # one (B, H) tensor a text of the examples
Outputs = Any  # of a head: logits (B, C), values (B,), or what the loss of its kind wants
Loss = Callable[[Outputs, Embeddings, Tensor], Tensor]  # outputs, embeddings, targets -> scalar


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


class Source(Protocol):
    """Where the examples of a task come from."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Those there are, of train, dev and test."""
        ...

    def read(self, folder: Path, split: str, limit: int | None = None) -> Examples:
        """The examples of a split; DataError names file and line.

        `limit` is always kept of train: so many, or so many of each task the texts come from. Of
        dev and test `tasks.data.read_split` draws.
        """
        ...

    def where(self, folder: Path, split: str) -> str:
        """The file or files of a split."""
        ...


@dataclass(frozen=True)
class LabelledFiles:
    """Tab-separated files, one a split: a text or two and a label, which `test` lacks as a rule.

    They lie in the first of the `places` of the data folder in which they are found. Without an
    `id_column` an example's row is its id, from 1; `header` names the columns of files that do not;
    with `comma` fields may be separated by commas, too.
    """

    files: Mapping[str, str]
    text_columns: tuple[str, ...]
    label_column: str
    parse_label: Callable[[str], float]
    clean_text: Callable[[str], str]
    target_type: type
    places: tuple[str, ...] = (".",)
    id_column: str | None = "id"
    quoted: bool = True
    header: tuple[str, ...] | None = None
    comma: bool = False
    labelled_test: bool = False
    blank: tuple[str, ...] = ("", NO_AGREEMENT)  # labels that are none
    lower_ids: bool = True

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, folder: Path, split: str, limit: int | None = None) -> Examples:
        return self.at(folder, split).some(limit)

    def at(self, folder: Path, split: str, places: np.ndarray | None = None) -> Examples:
        """The examples of these places in the file, or all; no others are held."""
        file, rows = self.file(folder, split), self.rows(folder, split)
        kind = self.target_type if self.labelled(split) else None
        return gathered(file, rows, len(self.text_columns), kind, places)

    def labelled(self, split: str) -> bool:
        return split != "test" or self.labelled_test

    def count(self, folder: Path, split: str) -> int:
        """How many examples a split has, none of which is held."""
        return sum(row is not None for row in self.rows(folder, split))

    def rows(self, folder: Path, split: str) -> Iterator[Row | None]:
        """One after the other; None for a blank label."""
        return example_rows(
            self.file(folder, split),
            self.text_columns,
            self.clean_text,
            self.label_column if self.labelled(split) else None,
            self.parse_label,
            self.id_column,
            self.quoted,
            self.header,
            self.comma,
            self.blank,
            self.lower_ids,
        )

    def file(self, folder: Path, split: str) -> Path:
        """Where the file is: all of a task's lie in the first place that has any of them."""
        places = [folder / place for place in self.places]
        having = [p for p in places if any((p / file).exists() for file in self.files.values())]
        return (having or places)[0] / self.files[split]

    def where(self, folder: Path, split: str) -> str:
        return str(self.file(folder, split))


@dataclass(frozen=True)
class Task:
    """One task of the shared encoder.

    `build_head(H)` makes a module from the embeddings of an example's texts to outputs; `output` is
    None for a task whose predictions nobody asks for. `several` are named losses where they are not
    its kind's alone: of the head's outputs, the texts' embeddings and the targets.
    `in_batch` says that losses compare the examples of a batch: they are not a mean over examples,
    and a batch goes through them whole. An example has so many `texts`; `joint` says that both of
    a pair share a sequence, and one embedding. `later` is a number of epochs, and the
    loss that takes over after them.
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

    def read(self, folder: Path, split: str, limit: int | None = None) -> Examples:
        """Examples of `train`, `dev` or `test` (no labels), all or `limit` drawn at random."""
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


def argmax(scores: np.ndarray) -> np.ndarray:
    return scores.argmax(1)


def identity(scores: np.ndarray) -> np.ndarray:
    return scores


def classification(
    classes: int, f1_average: str, matthews: bool = False, names: tuple[str, ...] = ()
) -> Kind:
    """Cross-entropy on logits (B, C); accuracy, and F1 of class 1 or averaged over the classes.

    With `matthews` also Matthews' correlation.
    """
    metrics = ["accuracy", "f1" if f1_average == "binary" else "macro_f1"]
    metrics += ["matthews"] if matthews else []

    return Kind(
        loss=F.cross_entropy,
        scores=lambda logits: logits.softmax(-1),
        predictions=argmax,
        metrics=measured(*metrics),
        main_metric="accuracy",
        worst=0.0,
        divergence=symmetric_kl,
        classes=classes,
        class_names=names,
    )


def similarity(scale: float) -> Kind:
    """Squared error of values (B,) from 0 to `scale`, both divided by `scale`."""
    return Kind(
        loss=lambda values, targets: F.mse_loss(values / scale, targets / scale),
        scores=lambda values: values,
        predictions=identity,
        metrics=measured("pearson", "spearman"),
        main_metric="pearson",
        worst=-1.0,
        divergence=lambda values, others: squared_difference(values / scale, others / scale),
    )
