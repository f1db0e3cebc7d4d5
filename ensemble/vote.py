"""Majority vote (BEES, section 4.6) with a rule for ties."""

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
    chosen = np.asarray(predictions)
    if chosen.ndim != 2 or len(chosen) == 0:
        raise ValueError(
            f"predictions: expected models x examples, at least one model, found {chosen.shape}"
        )
    if chosen.size == 0:
        return np.zeros(0, np.int64)
    if not np.array_equal(chosen, chosen.astype(np.int64)) or chosen.min() < 0:
        raise ValueError("predictions: expected classes, integers from 0")
    chosen = chosen.astype(np.int64)
    summed = None if probabilities is None else summed_probabilities(probabilities, chosen.shape)
    classes = int(chosen.max()) + 1 if summed is None else summed.shape[1]
    if chosen.max() >= classes:
        raise ValueError(f"predictions: expected classes below {classes}, found {chosen.max()}")
    votes = (chosen[:, :, None] == np.arange(classes)).sum(0)  # (N, C)
    tied = votes == votes.max(1, keepdims=True)
    if summed is not None:
        among = np.where(tied, summed, -np.inf)
        tied &= among >= among.max(1, keepdims=True) - TIE
    return tied.argmax(1)  # the first of those left


def summed_probabilities(probabilities: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Sum probabilities over the models in float64: (M, N, C) -> (N, C)."""
    values = np.asarray(probabilities, np.float64)
    if values.ndim != 3 or values.shape[:2] != shape:
        raise ValueError(
            f"probabilities: expected {shape[0]} models x {shape[1]} examples x classes, "
            f"found {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("probabilities: expected finite numbers, found others")
    return values.sum(0)


def average(scores: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
    """Average models x examples (M, N) or models x examples x classes (M, N, C) in float64.

    Raises ValueError if there is no model or the models' shapes differ.
    """
    values = [np.asarray(one, np.float64) for one in scores]
    if not values or any(one.shape != values[0].shape for one in values):
        found = ", ".join(str(one.shape) for one in values) or "none"
        raise ValueError(f"scores: expected one shape for all models, found {found}")
    return np.mean(values, axis=0)
