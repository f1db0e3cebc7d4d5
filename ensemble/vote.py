"""Majority vote (BEES, section 4.6) with a rule for ties."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

TIE = 1e-12  # summed probabilities that are nearer than this count as equal


def majority_vote(predictions: ArrayLike, probabilities: ArrayLike | None = None) -> np.ndarray:
    """Models x examples (M, N) of classes -> the class with most votes for each example (N,).

    BEES asks for an absolute majority, which three models and five classes need not have. Among the
    classes with equally many votes the one with the larger sum of `probabilities` (M, N, C) wins;
    sums within 1e-12 count as equal, and of equal classes the lowest wins, as without
    probabilities. Raises ValueError for shapes that do not fit or classes that are not 0..C-1.
    """
    chosen = np.asarray(predictions)
    if chosen.ndim != 2 or len(chosen) == 0:
        raise ValueError(
            f"predictions: expected models x examples, a model at least, found {chosen.shape}"
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
    """(M, N, C) -> (N, C), float64."""
    values = np.asarray(probabilities, np.float64)
    if values.ndim != 3 or values.shape[:2] != shape:
        raise ValueError(
            f"probabilities: expected {shape[0]} models x {shape[1]} examples x classes, "
            f"found {values.shape}"
        )
    return values.sum(0)
