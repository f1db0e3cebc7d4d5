"""Alignment of several models' predictions by the ids of the examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tasks.predictions import Scores, UserError


@dataclass(frozen=True)
class Aligned:
    """Outputs of M models for the same N examples: `values` (M, N, C) or (M, N).

    `predictions` (M, N) are stored with the values, or else computed from them. `selected_on` (N,)
    marks the examples that were used to select the members of any model.
    """

    ids: np.ndarray
    values: np.ndarray
    predictions: np.ndarray
    targets: np.ndarray | None
    selected_on: np.ndarray


def aligned(tables: Mapping[str, Scores], predict: Callable[[np.ndarray], np.ndarray]) -> Aligned:
    """Align all models' rows to the first model's ids; `predict` maps values to predictions.

    Raises UserError if the ids, the classes or the targets of two models differ.
    """
    (first, found), *_ = tables.items()
    several = []
    for name, other in tables.items():
        place = {one: row for row, one in enumerate(other.ids.tolist())}
        if different := place.keys() ^ {*found.ids.tolist()}:
            line = f"only one of them has {min(different)}"
            raise UserError(f"{name} and {first} have different examples: {line}")
        other = other.rows(np.array([place[one] for one in found.ids.tolist()], np.int64))
        if other.values.shape != found.values.shape:
            line = f"{found.values.shape}, as {first} has them, found {other.values.shape}"
            raise UserError(f"{name}: expected values {line}")
        mine, theirs = found.targets, other.targets
        if not (mine is None or theirs is None or np.array_equal(mine, theirs)):
            raise UserError(f"{name} and {first} have different labels")
        several.append(other)
    marks = [one.selected_on for one in several if one.selected_on is not None]
    return Aligned(
        ids=found.ids,
        values=np.stack([one.values for one in several]),
        predictions=np.stack([one.predicted(predict) for one in several]),
        targets=found.targets,
        selected_on=np.any([np.zeros(len(found.ids), bool), *marks], axis=0),
    )
