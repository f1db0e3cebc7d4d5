"""Functions of Gram matrices (m, m): the inner products of the gradients of m objectives."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def whole_gram(grams: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the Gram matrix (m, m) of the complete gradients, the sum over the sections."""
    return np.sum(list(grams.values()), axis=0)


def cosines_of(grams: np.ndarray) -> np.ndarray:
    """Return the cosines (..., m, m) of Gram matrices (..., m, m); 0 for a zero gradient.

    A gradient that is not finite has NaN.
    """
    norms = np.sqrt(np.diagonal(grams, axis1=-2, axis2=-1))
    scale = norms[..., :, None] * norms[..., None, :]
    with np.errstate(invalid="ignore"):
        return np.divide(grams, scale, out=np.zeros_like(grams), where=scale != 0)
