"""MGDA: the exact shortest vector in the convex hull of the gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from multitask.combiners.base import Combined, Combiner


def min_norm_weights(gram: np.ndarray) -> np.ndarray:
    """Return the weights on the simplex of the shortest vector in the gradients' convex hull.

    The solution is exact, by non-negative least squares: for the rows B, the x >= 0 that minimises
    |B^T x|^2 + (sum x - 1)^2 is proportional to these weights.
    """
    from scipy.optimize import nnls

    scale = np.diag(gram).mean()
    if not scale > 0:
        return np.full(len(gram), 1 / len(gram))
    values, vectors = np.linalg.eigh(gram / scale)
    factor = vectors * np.sqrt(np.maximum(values, 0))  # gram = factor @ factor.T
    target = np.zeros(len(gram) + 1)
    target[-1] = 1
    weights, _ = nnls(np.vstack([factor.T, np.ones(len(gram))]), target)
    return weights / weights.sum()


class MGDA(Combiner, name="mgda"):
    """Shortest vector of the gradients' convex hull (Désidéri, 2012; Sener and Koltun, 2018)."""

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        return Combined(min_norm_weights(gram) * len(gram), "solved")
