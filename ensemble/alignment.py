"""Alignment of several models' predictions by the ids of the examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tasks.predictions import Scores, UserError


@dataclass(frozen=True)
class Aligned:
    """Outputs of the M models `names` for the same N examples: `values` (M, N, C) or (M, N).

    `predictions` (M, N) are stored with the values, or else computed from them. `selected_on` (N,)
    marks the examples that were used to select the members of any model.
    """

    names: tuple[str, ...]
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
        other = other.rows(positions(found.ids, other.ids, first, name))
        if other.values.shape != found.values.shape:
            raise UserError(
                f"{name}: expected values {found.values.shape}, as {first} has them, "
                f"found {other.values.shape}"
            )
        if (
            found.targets is not None
            and other.targets is not None
            and not np.array_equal(found.targets, other.targets)
        ):
            raise UserError(f"{name}: expected the labels of {first}, found other labels")
        several.append(other)
    marks = [one.selected_on for one in several if one.selected_on is not None]
    return Aligned(
        names=tuple(tables),
        ids=found.ids,
        values=np.stack([one.values for one in several]),
        predictions=np.stack([one.predicted(predict) for one in several]),
        targets=found.targets,
        selected_on=np.any([np.zeros(len(found.ids), bool), *marks], axis=0),
    )


def positions(wanted: np.ndarray, ids: np.ndarray, first: str, name: str) -> np.ndarray:
    """Return the row in `ids` of each wanted id (N,); raise UserError if the ids differ."""
    place = {one: row for row, one in enumerate(ids.tolist())}
    missing = [one for one in wanted.tolist() if one not in place]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise UserError(f"{name}: expected the examples of {first}, lacks {missing[0]}{more}")
    if len(ids) != len(wanted):
        raise UserError(f"{name}: expected the {len(wanted)} examples of {first}, found {len(ids)}")
    return np.array([place[one] for one in wanted.tolist()], np.int64)
