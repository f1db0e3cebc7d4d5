"""The types of own tasks: class, several labels, number, similarity. To add one, extend `TYPES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from common.later import nn
from tasks.kinds import Kind
from tasks.predictions import PredictionFile, finite_number
from tasks.readers import named_label, score_label, to_number
from tasks.registry import TargetType
from tasks.text_files import DataError

if TYPE_CHECKING:
    from tasks.own_task import OwnTask

TypeName = Literal["classification", "multi-label", "regression", "similarity"]
SEPARATOR = "|"  # of several labels in a cell, by default
LARGEST = 1e30  # number, so that float32 can hold it
LEAST_SPREAD = 1e-5  # of the deviation to the largest number: float32 has seven digits
INDICATORS = {
    **dict.fromkeys(("", "0", "0.0", "no", "false"), 0.0),
    **dict.fromkeys(("1", "1.0", "yes", "true"), 1.0),
}


class Parts(NamedTuple):
    """What a type decides of a task: `parse_label` reads a label of its files."""

    kind: Kind
    build_head: Callable[[int], nn.Module]
    output: PredictionFile
    parse_label: Callable[[str], Any]
    target_type: type


@dataclass(frozen=True)
class OwnType:
    """A type of own tasks, a value of the key `type`.

    `predicts` says what an example has, and `main_metric` is that of its `Kind`. `complete(task)`
    returns the fields in `read`, from the labels of the training file. `texts` are the possible
    numbers of texts.
    """

    predicts: TargetType
    main_metric: str
    read: tuple[str, ...]
    complete: Callable[[OwnTask], dict[str, Any]]
    parts: Callable[[OwnTask], Parts]
    texts: tuple[int, ...] = (1, 2)


# Classes and several labels


def parts_of(cell: str, separator: str) -> Iterator[str]:
    """Yield the labels in a cell, without empty ones."""
    yield from filter(None, map(str.strip, cell.split(separator)))


def in_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the different labels, sorted as numbers if all are numbers, else as text."""
    numbers = all(to_number(label) is not None for label in labels)
    return tuple(sorted(dict.fromkeys(labels), key=float if numbers else str))


def classes_of(task: OwnTask) -> dict[str, Any]:
    return {"labels": in_order([cell for _, cell in task.cells()])}


def labels_of(task: OwnTask) -> dict[str, Any]:
    """Return the labels in the cells, or those with a column each, and their separator."""
    separator = task.separator or SEPARATOR
    labels = task.labels if len(task.label) == 1 else task.label
    if not labels:
        cells = [cell for _, cell in task.cells()]
        check_no_lists(cells)
        labels = in_order([label for cell in cells for label in parts_of(cell, separator)])
    return {"labels": labels, "separator": separator}


def check_no_lists(cells: Sequence[str]) -> None:
    """Raise ValueError if most cells are lists as a program prints them, such as ['a', 'b']."""
    lists = [cell for cell in cells if cell.startswith(("['", '["'))]
    if 2 * len(lists) > len(cells):
        cure = "save the table as JSON Lines or Parquet, or write labels with a mark between them"
        raise ValueError(f"expected labels, found lists as text, such as {lists[0][:40]!r}; {cure}")


def head(task: OwnTask, outputs: int) -> Callable[[int], nn.Module]:
    """Return BEES' head for a text (M4), also for a joint pair, or for both texts (M5)."""
    from tasks.heads import HiddenClassifier, PairClassifier

    if task.vectors == 2:
        return partial(PairClassifier, classes=outputs, difference=True)
    return partial(HiddenClassifier, classes=outputs)


def classification(task: OwnTask) -> Parts:
    from tasks import kinds

    labels, parse = task.labels, named_label(task.labels)
    return Parts(
        kinds.classification(len(labels), matthews=True, names=labels),
        head(task, len(labels)),
        PredictionFile(task.name, "Predicted_Label", lambda value: labels[int(value)], parse),
        parse,
        np.int64,
    )


def multi_label(task: OwnTask) -> Parts:
    """Return BEES' heads of classes, with a sigmoid per label; targets are (n, C)."""
    from tasks import kinds

    labels, separator = task.labels, task.separator or SEPARATOR

    def show(values: Sequence[float]) -> str:
        return separator.join(one for one, value in zip(labels, values, strict=True) if value)

    def parse(cell: str) -> tuple[float, ...]:
        found = set(parts_of(cell, separator))
        if found - {*labels}:
            raise ValueError(f"expected labels of {', '.join(labels)}")
        return tuple(float(label in found) for label in labels)

    return Parts(
        kinds.multi_label(len(labels), labels),
        head(task, len(labels)),
        PredictionFile(task.name, "Predicted_Labels", show, parse),
        parse if len(task.label) == 1 else indicator,
        np.float32,
    )


def indicator(cell: str) -> float:
    """Parse a cell of a label's own column; a blank one means 0."""
    if cell.lower() not in INDICATORS:
        raise ValueError("expected 0 or 1, no or yes, false or true")
    return INDICATORS[cell.lower()]


# Numbers and similarities


def numbers_of(task: OwnTask) -> np.ndarray:
    """Return the numbers in the training file."""
    found = []
    for line, cell in task.cells():
        if (value := to_number(cell)) is None:
            raise DataError(f"{task.train}, line {line}: expected a number, found {cell!r}")
        found.append(value)
    return np.array(found)


def scale_of(task: OwnTask) -> dict[str, Any]:
    """Return the lowest and the highest label, where they are not given."""
    numbers = numbers_of(task)
    low = float(numbers.min()) if task.low is None else task.low
    return {"low": low, "high": float(numbers.max()) if task.high is None else task.high}


def moments_of(task: OwnTask) -> dict[str, Any]:
    """Return mean and standard deviation, with which the numbers are standardised."""
    numbers = numbers_of(task)
    mean, deviation = float(numbers.mean()), float(numbers.std())
    largest = float(np.abs(numbers).max())
    if deviation <= LEAST_SPREAD * largest:  # the deviation of very small numbers may be 0
        raise ValueError(
            f"expected numbers that differ, found a standard deviation of {deviation:.3g} and a "
            f"largest number of {largest:.3g}; subtract a constant or use a smaller unit"
        )
    return {"mean": mean, "deviation": deviation}


def number(label: str) -> float:
    """Parse a number that float32 can hold; raise ValueError with what was expected."""
    value = to_number(label)
    if value is None or abs(value) > LARGEST:
        raise ValueError(f"expected a number from {-LARGEST:g} to {LARGEST:g}")
    return value


def regression(task: OwnTask) -> Parts:
    """Return the head of classes for the same texts, with one output."""
    from tasks import kinds

    assert task.mean is not None, "a complete task has a mean"
    assert task.deviation is not None, "a complete task has a deviation"
    return Parts(
        kinds.regression(task.mean, task.deviation),
        head(task, 1),
        PredictionFile(
            task.name, "Predicted_Number", lambda value: str(np.float32(value)), finite_number
        ),
        number,
        np.float32,
    )


def similarity(task: OwnTask) -> Parts:
    """Return BEES' head for similarity (M6), or for a joint pair a regression.

    Targets are relative to `low`, but not the numbers in files.
    """
    from tasks import kinds
    from tasks.heads import CosineSimilarity, JointSimilarity

    assert task.low is not None, "a complete task has a scale"
    assert task.high is not None, "a complete task has a scale"
    low, span, score = task.low, task.high - task.low, score_label(task.low, task.high)
    cosine = partial(CosineSimilarity, scale=span, hidden=True, activation="relu")
    return Parts(
        kinds.similarity(span),
        partial(JointSimilarity, scale=span) if task.joint else cosine,
        PredictionFile(
            task.name,
            "Predicted_Similarity",
            show=lambda value: str(np.float32(value + low)),
            parse=lambda text: finite_number(text) - low,
            scale=(0, span),
        ),
        lambda text: score(text) - low,
        np.float32,
    )


TYPES: dict[TypeName, OwnType] = {
    "classification": OwnType("class", "accuracy", ("labels",), classes_of, classification),
    "multi-label": OwnType("labels", "micro_f1", ("labels", "separator"), labels_of, multi_label),
    "regression": OwnType("number", "pearson", ("mean", "deviation"), moments_of, regression),
    "similarity": OwnType("similarity", "pearson", ("low", "high"), scale_of, similarity, (2,)),
}
