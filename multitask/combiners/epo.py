"""Exact Pareto optimal search (EPO; Mahapatra and Rajan, 2020), computed from the Gram matrix.

EPO moves the losses l to the ray r_1 l_1 = ... = r_m l_m (balance), and then down along the ray
(descent). Notation: m objectives, preference r > 0, losses l >= 0, Gram matrix C of the gradients.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import ALONE, Combined, WithPreference

RELATIVE_ERROR = 16 * np.finfo(np.float64).eps  # bound of the relative error of a few operations
FLOOR = 1e-12  # smallest share of a loss, only inside the logarithm of the adjustment


def non_uniformity(losses: np.ndarray, preference: np.ndarray) -> float:
    """Return mu, the deviation of r * l from equal values: 0 on the ray, at most ln m."""
    scaled = preference * losses
    if not scaled.sum():
        return 0.0
    share = scaled / scaled.sum()
    share = share[share > np.finfo(np.float64).eps]
    return float((share * np.log(len(losses) * share)).sum())


def epo_weights(
    gram: Any, losses: Any, preference: Any, threshold: float = 1e-4, relaxed: bool = False
) -> np.ndarray:
    """Return weights alpha on the simplex; `alpha @ G` is the direction to descend along.

    Exact Pareto optimal search (Mahapatra and Rajan, 2020).

    Args:
        gram: (m, m) inner products of the gradients; array or tensor.
        losses: (m,), none negative.
        preference: (m,), all positive; only their ratios define the ray.
        threshold: non-uniformity up to which the ray counts as reached.
        relaxed: let the descent leave the ray; an infeasible restricted descent is always relaxed.

    Raises:
        ValueError: for wrong shapes, infinity, NaN, negative losses, or preferences not above 0.
    """
    return epo_solution(gram, losses, preference, threshold, relaxed)[0]


def epo_solution(
    gram: Any, losses: Any, preference: Any, threshold: float = 1e-4, relaxed: bool = False
) -> tuple[np.ndarray, str]:
    """Return the weights of `epo_weights` and the mode that computed them."""
    matrix, found, ray = (np.asarray(value, np.float64) for value in (gram, losses, preference))
    m = len(found)
    if matrix.shape != (m, m) or ray.shape != (m,):
        raise ValueError(
            f"expected a gram matrix ({m}, {m}) and {m} preferences, "
            f"found {matrix.shape} and {ray.shape}"
        )
    if not (np.isfinite(matrix).all() and np.isfinite(found).all()):
        raise ValueError("gram and losses: expected finite numbers, found inf or nan")
    if not np.all(found >= 0):
        raise ValueError(f"losses: expected none below zero, found {found.tolist()}")
    if not (np.all(ray > 0) and np.all(np.isfinite(ray))):
        raise ValueError(f"preference: expected positive numbers, found {ray.tolist()}")
    if m == 1:
        return np.ones(1), ALONE
    scale = np.diag(matrix).mean()
    if not scale > 0:
        return np.full(m, 1 / m), "no gradient"
    matrix = matrix / scale  # same solution, and the solver's tolerances fit
    scaled = ray * found
    mu = non_uniformity(found, ray)
    share = scaled / scaled.sum() if scaled.sum() else np.full(m, 1 / m)
    logs = np.log(m * np.maximum(share, FLOOR))
    # Rounding must not turn a zero into a sign, which decides the constraints.
    error = RELATIVE_ERROR * ray * (1 + np.abs(logs) + mu)
    adjustment = without_noise(ray * (logs - mu), error)
    gain_error = np.abs(matrix) @ (error + m * RELATIVE_ERROR * np.abs(adjustment))
    # gain_j > 0: moving along G^T a lowers objective j
    gain = without_noise(matrix @ adjustment, gain_error)
    if mu > threshold:
        lower = np.where(gain > 0, -np.inf, gain) if (gain > 0).any() else np.zeros(m)
        lower = np.where(scaled >= (1 - RELATIVE_ERROR) * scaled.max(), 0.0, lower)
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


def without_noise(values: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Return the values with 0 for those within their rounding `error`."""
    return np.where(np.abs(values) <= error, 0.0, values)


def maximize(slope: np.ndarray, matrix: np.ndarray, lower: np.ndarray) -> np.ndarray | None:
    """Maximise `slope . alpha` on the simplex subject to `matrix @ alpha >= lower`.

    Return None if that is infeasible. Two objectives have a closed form; for more, a linear program
    is solved exactly.
    """
    bound = np.isfinite(lower)
    matrix, lower = matrix[bound], lower[bound]
    if len(slope) == 2:
        return on_segment(slope, matrix, lower)
    from scipy.optimize import linprog

    # HiGHS' tolerances are absolute, so each row is divided by its largest number.
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
    """Solve `maximize` for two objectives: alpha = (t, 1 - t), each row bounds t on one side."""
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

    The weights are m alpha, as in the authors' training loops.
    """

    nonnegative = True

    def faults(self) -> Iterator[str]:
        if self.preference is not None and not all(weight > 0 for weight in self.preference):
            shown = " ".join(f"{weight:g}" for weight in self.preference)
            yield f"preference: must be above 0 for combiner {self.name}, found {shown}"

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        wish = np.full(len(drawn), 1.0)
        if self.preference is not None:
            wish = np.asarray(self.preference)[list(drawn)]
        alpha, status = epo_solution(gram, losses, wish / wish.sum())
        return Combined(alpha * len(drawn), status)
