"""Majority vote and average of several models (BEES, section 4.6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

TIE = 1e-12  # summed probabilities that differ by at most this count as equal


def majority_vote(predictions: ArrayLike, probabilities: ArrayLike | None = None) -> np.ndarray:
    """Return the class with the most votes for each example (N,), from models' classes (M, N).

    BEES requires an absolute majority, which three models and five classes may not have. In a tie,
    the class with the largest sum of `probabilities` (M, N, C) wins; sums within 1e-12 count as
    equal. In a remaining tie, or without probabilities, the lowest class wins. Raises ValueError
    for shapes that do not match, classes other than 0..C-1, and probabilities that are not finite.
    """
    given = np.asarray(predictions)
    if given.ndim != 2 or len(given) == 0:
        raise ValueError(f"predictions: expected models x examples, found shape {given.shape}")
    chosen = given.astype(np.int64)
    classes = int(chosen.max(initial=0)) + 1
    summed = np.zeros((chosen.shape[1], classes))
    if probabilities is not None:
        values = np.asarray(probabilities, np.float64)
        if values.shape[:-1] != chosen.shape or not np.isfinite(values).all():
            raise ValueError(f"probabilities: expected finite numbers {(*chosen.shape, 'classes')}")
        classes, summed = values.shape[2], values.sum(0)
    if not np.isin(given, np.arange(classes)).all():
        raise ValueError(f"predictions: expected classes from 0 to {classes - 1}, found others")
    votes = (chosen[:, :, None] == np.arange(classes)).sum(0)  # (N, C)
    tied = votes == votes.max(1, keepdims=True)
    among = np.where(tied, summed, -np.inf)
    # The first of those left.
    return (tied & (among >= among.max(1, keepdims=True) - TIE)).argmax(1)


def average(scores: ArrayLike | Sequence[np.ndarray]) -> np.ndarray:
    """Average models x examples (M, N) or models x examples x classes (M, N, C) in float64.

    Raises ValueError if there is no model or the models' shapes differ.
    """
    values = np.asarray(scores, np.float64)
    if len(values) == 0:
        raise ValueError("scores: expected at least one model, found none")
    return values.mean(0)
