"""The mean of several models' outputs: similarities (BEES, section 4.6) or probabilities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def average(scores: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
    """Average models x examples (M, N) or models x examples x classes (M, N, C) in float64.

    Raises ValueError if there is no model or the models' shapes differ.
    """
    values = [np.asarray(one, np.float64) for one in scores]
    if not values or any(one.shape != values[0].shape for one in values):
        found = ", ".join(str(one.shape) for one in values) or "none"
        raise ValueError(f"scores: expected one shape for all models, found {found}")
    return np.mean(values, axis=0)
