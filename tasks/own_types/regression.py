"""Own tasks with a number, on any scale, for each text or pair of texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any

import numpy as np

from common.later import nn
from tasks.own_types.base import LabelsByLine, OwnType, Parts, TaskDescription, columns
from tasks.own_types.classes import head
from tasks.predictions import PredictionFile, finite_number
from tasks.readers import to_number
from tasks.text_files import DataError

LARGEST = 1e30  # number, so that float32 can hold it
LEAST_SPREAD = 1e-5  # of the deviation to the largest number: float32 has seven digits


def complete(
    name: str, description: Mapping[str, Any], file: str, found: LabelsByLine
) -> dict[str, Any]:
    """Return mean and standard deviation of the numbers in the training file."""
    numbers = np.fromiter((read(label, f"{file}, line {line}") for line, label in found), float)
    if not len(numbers) or np.all(numbers == numbers[0]):
        raise DataError(f"{file}: {name}: expected two different numbers, found none or one")
    mean, deviation = float(numbers.mean()), float(numbers.std())
    largest = float(np.abs(numbers).max())
    if deviation <= LEAST_SPREAD * largest:  # the deviation of very small numbers may be 0
        raise DataError(
            f"{file}: {name}: expected a standard deviation of {LEAST_SPREAD:g} of the largest "
            f"number or more, found {deviation:.3g} of {largest:.3g}; subtract a constant or use a "
            "smaller unit"
        )
    return {"mean": mean, "deviation": deviation}


def read(label: str, where: str) -> float:
    try:
        return number(label)
    except ValueError as error:
        raise DataError(f"{where}: {error}, found {label!r}") from error


def number(label: str) -> float:
    """Parse a finite number; raise ValueError with what was expected."""
    value = to_number(label)
    if value is None:
        raise ValueError("expected a number")
    if abs(value) > LARGEST:
        raise ValueError(f"expected a number from {-LARGEST:g} to {LARGEST:g}")
    return value


def fault(described: TaskDescription) -> str | None:
    mean, deviation = described.mean, described.deviation
    if mean is None or not isfinite(mean):
        return f"mean: expected a finite number, found {mean}"
    if deviation is None or not 0 < deviation < float("inf"):
        return f"deviation: expected a positive number, found {deviation}"
    return None


def lines(described: TaskDescription) -> Iterator[str]:
    middle = f"mean {described.mean:.4g}, standard deviation {described.deviation:.4g}"
    yield f"regression of {columns(described)}, {middle}, in column {described.label!r}"


def one_output(described: TaskDescription) -> Callable[[int], nn.Module]:
    """Return the head of classes for the same texts, with one output."""
    from tasks.heads import OneNumber

    inner = head(described, 1)
    return lambda width: OneNumber(inner(width))


def build(described: TaskDescription) -> Parts:
    from tasks.kinds import regression

    assert described.mean is not None, "a complete description has a mean"
    assert described.deviation is not None, "a complete description has a deviation"
    return Parts(
        kind=regression(described.mean, described.deviation),
        build_head=one_output(described),
        output=PredictionFile(
            described.name,
            "Predicted_Number",
            show=lambda value: str(np.float32(value)),
            parse=finite_number,
        ),
        parse_label=number,
        target_type=np.float32,
    )


REGRESSION = OwnType(
    predicts="number",
    main_metric="pearson",
    texts=(1, 2),
    keys=(),
    complete=complete,
    fault=fault,
    lines=lines,
    build=build,
    measured=("mean", "deviation"),
)
