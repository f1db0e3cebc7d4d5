"""Exact Pareto optimal search (EPO; Mahapatra and Rajan, 2020), on the Gram matrix alone.

It moves the losses l onto the ray where r_1 l_1 = ... = r_m l_m (balance), and then down along it
(descent). m objectives, preference r > 0, losses l >= 0, Gram matrix C of the gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import (
    ALONE,
    Combined,
    ObjectiveError,
    WithPreference,
    preferences,
)

FLOOR = 1e-12  # of a loss's share, inside the logarithm of the adjustment only


def non_uniformity(losses: np.ndarray, preference: np.ndarray) -> float:
    """mu: how far r * l is from being equal in all objectives; 0 on the ray, at most ln m."""
    scaled = preference * losses
    if not scaled.sum():
        return 0.0
    share = scaled / scaled.sum()
    share = share[share > np.finfo(np.float64).eps]
    return float((share * np.log(len(losses) * share)).sum())


def epo_weights(
    gram: Any, losses: Any, preference: Any, threshold: float = 1e-4, relaxed: bool = False
) -> np.ndarray:
    """Weights alpha on the simplex; `alpha @ G` is the direction to descend along.

    Args:
        gram: (m, m) inner products of the gradients; array or tensor.
        losses: (m,), none negative.
        preference: (m,), all positive; only their ratios name the ray.
        threshold: of the non-uniformity, below which the ray counts as reached.
        relaxed: let the descent leave the ray; where the restricted one is infeasible, it is
            relaxed anyway.

    Raises:
        ValueError: for negative losses or preferences that are not positive.
    """
    return epo_solution(gram, losses, preference, threshold, relaxed)[0]


def epo_solution(
    gram: Any, losses: Any, preference: Any, threshold: float = 1e-4, relaxed: bool = False
) -> tuple[np.ndarray, str]:
    """`epo_weights` and the mode they come from."""
    matrix, found, wish = (np.asarray(value, np.float64) for value in (gram, losses, preference))
    m = len(found)
    if matrix.shape != (m, m) or wish.shape != (m,):
        raise ValueError(
            f"expected a gram matrix ({m}, {m}) and {m} preferences, "
            f"found {matrix.shape} and {wish.shape}"
        )
    if not (np.isfinite(matrix).all() and np.isfinite(found).all()):
        raise ValueError("gram and losses: expected finite numbers, found inf or nan")
    if not np.all(found >= 0):
        raise ValueError(f"losses: expected none below zero, found {found.tolist()}")
    if not (np.all(wish > 0) and np.all(np.isfinite(wish))):
        raise ValueError(f"preference: expected positive numbers, found {wish.tolist()}")
    if m == 1:
        return np.ones(1), ALONE
    scale = np.diag(matrix).mean()
    if not scale > 0:
        return np.full(m, 1 / m), "no gradient"
    matrix = matrix / scale  # the solution does not change, the solver's tolerances fit
    scaled = wish * found
    mu = non_uniformity(found, wish)
    share = scaled / scaled.sum() if scaled.sum() else np.full(m, 1 / m)
    adjustment = wish * (np.log(m * np.maximum(share, FLOOR)) - mu)
    gain = matrix @ adjustment  # gain_j > 0: moving along G^T a lowers objective j
    if mu > threshold:
        lower = np.where(gain > 0, -np.inf, gain) if (gain > 0).any() else np.zeros(m)
        lower = np.where(scaled == scaled.max(), 0.0, lower)
        solution = maximize(gain, matrix, lower)
        return (np.full(m, 1 / m), "infeasible") if solution is None else (solution, "balance")
    descent = matrix.sum(0)
    if not relaxed:
        along = np.vstack([matrix, gain])
        bounds = np.append(np.zeros(m), min(gain.max(), 0.0))
        solution = maximize(descent, along, bounds)
        if solution is not None:
            return solution, "descent"
    solution = maximize(descent, matrix, np.zeros(m))
    return (np.full(m, 1 / m), "infeasible") if solution is None else (solution, "descent, relaxed")


def maximize(slope: np.ndarray, matrix: np.ndarray, lower: np.ndarray) -> np.ndarray | None:
    """The alpha on the simplex with the largest `slope . alpha` and `matrix @ alpha >= lower`.

    None if there is none. Two objectives have a closed form; more go to an exact linear program.
    """
    bound = np.isfinite(lower)
    matrix, lower = matrix[bound], lower[bound]
    if len(slope) == 2:
        return on_segment(slope, matrix, lower)
    from scipy.optimize import linprog

    # Each line is brought to the size of its largest number: HiGHS' tolerances are absolute.
    size = np.maximum(np.abs(matrix).max(1, initial=0), np.abs(lower))
    size[size == 0] = 1
    top = np.abs(slope).max() or 1.0
    found = linprog(
        -slope / top,
        A_ub=-matrix / size[:, None] if len(matrix) else None,
        b_ub=-lower / size if len(matrix) else None,
        A_eq=np.ones((1, len(slope))),
        b_eq=[1.0],
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if not found.success:
        return None
    alpha = np.maximum(found.x, 0)
    return alpha / alpha.sum()


def on_segment(slope: np.ndarray, matrix: np.ndarray, lower: np.ndarray) -> np.ndarray | None:
    """`maximize` for two objectives: alpha = (t, 1 - t), every line bounds t from one side."""
    low, high = 0.0, 1.0
    for (first, second), bound in zip(matrix, lower, strict=True):
        steep, need = first - second, bound - second  # steep t >= need
        if steep > 0:
            low = max(low, need / steep)
        elif steep < 0:
            high = min(high, need / steep)
        elif need > 1e-12 * abs(second):
            return None
    if low > high:
        if low - high > 1e-9:  # more than rounding
            return None
        low = high = (low + high) / 2
    t = min(max(high if slope[0] > slope[1] else low, 0.0), 1.0)
    return np.array([t, 1 - t])


class EPO(WithPreference, name="epo"):
    """Exact Pareto optimal search for a preference (Mahapatra and Rajan, 2020).

    Weights are m alpha, as in the authors' training loops.
    """

    positive = sweeps = True

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        if (losses < 0).any():
            expected = f"combiner {self.name}: expected losses of zero or more"
            raise ObjectiveError(expected, drawn[int(losses.argmin())], float(losses.min()))
        alpha, status = epo_solution(gram, losses, preferences(self.preference, drawn))
        return Combined(alpha * len(drawn), status)
