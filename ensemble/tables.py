"""The predictions of several models, side by side: examples are found by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tasks.predictions import PredictionError, Scores


@dataclass(frozen=True)
class Aligned:
    """What M models, by `names`, say of the same N examples: `values` (M, N, C) or (M, N)."""

    names: tuple[str, ...]
    ids: np.ndarray
    values: np.ndarray
    targets: np.ndarray | None


def aligned(tables: Mapping[str, Scores]) -> Aligned:
    """All models' rows in the order of the first one's ids.

    Raises PredictionError where the ids, the classes or the targets of two models differ.
    """
    (first, found), *others = tables.items()
    values = [found.values]
    for name, other in others:
        order = positions(found.ids, other.ids, first, name)
        if other.values.shape != found.values.shape:
            raise PredictionError(
                f"{name}: expected values {found.values.shape}, as {first} has them, "
                f"found {other.values.shape}"
            )
        if (
            found.targets is not None
            and other.targets is not None
            and not np.array_equal(found.targets, other.targets[order])
        ):
            raise PredictionError(f"{name}: expected the labels of {first}, found others")
        values.append(other.values[order])
    return Aligned(tuple(tables), found.ids, np.stack(values), found.targets)


def positions(wanted: np.ndarray, ids: np.ndarray, first: str, name: str) -> np.ndarray:
    """Where in `ids` each wanted one stands (N,)."""
    place = {one: row for row, one in enumerate(ids.tolist())}
    missing = [one for one in wanted.tolist() if one not in place]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise PredictionError(f"{name}: expected the examples of {first}, lacks {missing[0]}{more}")
    if len(ids) != len(wanted):
        raise PredictionError(
            f"{name}: expected the {len(wanted)} examples of {first}, found {len(ids)}"
        )
    return np.array([place[one] for one in wanted.tolist()], np.int64)
