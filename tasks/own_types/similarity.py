"""Own tasks with a number for each pair of texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from tasks.own_types.base import (
    DescriptionError,
    LabelsByLine,
    OwnType,
    Parts,
    TaskDescription,
    columns,
)
from tasks.predictions import PredictionFile, finite_number
from tasks.readers import score_label, to_number
from tasks.text_files import DataError

LARGEST = 1e9  # as in TaskDescription


def complete(
    name: str, description: Mapping[str, Any], file: str, found: LabelsByLine
) -> dict[str, Any]:
    """Return the given bounds of the scale, replacing missing ones by those of the file."""
    low, high = scale(file, found)
    low = low if description.get("low") is None else description["low"]
    high = high if description.get("high") is None else description["high"]
    if not low < high:
        raise DescriptionError(f"expected low below high, found low={low:g} and high={high:g}")
    return {"low": low, "high": high}


def scale(file: str, found: LabelsByLine) -> tuple[float, float]:
    """Return the lowest and the highest label."""
    low, high = float("inf"), float("-inf")
    for line, label in found:
        value = to_number(label)
        if value is None or abs(value) >= LARGEST:
            wanted = f"a number above {-LARGEST:g} and below {LARGEST:g}"
            raise DataError(f"{file}, line {line}: expected {wanted}, found {label!r}")
        low, high = min(low, value), max(high, value)
    if not low < high:
        raise DataError(f"{file}: expected two different similarities, found none or one")
    return low, high


def fault(described: TaskDescription) -> str | None:
    return None if described.low < described.high else "expected low below high"


def lines(described: TaskDescription) -> Iterator[str]:
    ends = f"{described.low:g} to {described.high:g}"
    yield f"similarity of {columns(described)}, from {ends}, in column {described.label!r}"


def build(described: TaskDescription) -> Parts:
    """Return BEES' head for similarity (M6), or for a joint pair a regression.

    Targets are relative to `low`, but not the numbers in files.
    """
    from tasks.heads import CosineSimilarity, JointSimilarity
    from tasks.kinds import similarity

    low, span = described.low, described.high - described.low
    score = score_label(low, described.high)
    head = partial(CosineSimilarity, scale=span, hidden=True, activation="relu")
    return Parts(
        kind=similarity(span),
        build_head=partial(JointSimilarity, scale=span) if described.joint else head,
        output=PredictionFile(
            described.name,
            "Predicted_Similarity",
            show=lambda value: str(np.float32(value + low)),
            parse=lambda text: finite_number(text) - low,
            scale=(0, span),
        ),
        parse_label=lambda text: score(text) - low,
        target_type=np.float32,
    )


SIMILARITY = OwnType(
    predicts="similarity",
    main_metric="pearson",
    texts=(2,),
    keys=("low", "high"),
    complete=complete,
    fault=fault,
    lines=lines,
    build=build,
)
