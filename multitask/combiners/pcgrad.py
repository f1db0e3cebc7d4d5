"""PCGrad, gradient surgery (Yu et al., 2020, Algorithm 1), computed from the Gram matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from multitask.combiners.base import Combined, Combiner
from multitask.sampling import generator


def pcgrad_weights(gram: Any, order: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the weights of the original gradients in the *sum* of the projected ones.

    PCGrad (Yu et al., 2020, Algorithm 1). Gradient i is projected against the other tasks in the
    order `order[i]`: if its current value p conflicts with the original g_j (p . g_j < 0), the
    component along g_j is removed. p remains a combination of the original gradients, so that only
    their inner products are needed.

    Args:
        gram: (m, m) inner products of the m gradients; array or tensor.
        order: m orders of the other tasks' indices.

    Returns:
        float64 (m,): `weights @ G` is the sum over i of the projected gradients.
    """
    matrix = np.asarray(gram, np.float64)
    m, orders = len(matrix), [sorted([i, *others]) for i, others in enumerate(order)]
    if matrix.shape != (m, m) or orders != [list(range(m))] * m:
        raise ValueError(
            f"expected a gram matrix (m, m) and an order with each other task once, "
            f"found {matrix.shape} and {[list(others) for others in order]}"
        )
    projected = np.eye(m)  # row i: gradient i in terms of the original ones
    for i, others in enumerate(order):
        for j in others:
            dot = projected[i] @ matrix[:, j]
            if dot < 0:  # so g_j is not zero
                projected[i, j] -= dot / matrix[j, j]
    return projected.sum(0)


def random_order(generator: np.random.Generator, m: int) -> list[list[int]]:
    """Return a random order of the other tasks for each of m tasks."""
    return [[int(j) for j in generator.permutation(m) if j != i] for i in range(m)]


class PCGrad(Combiner, name="pcgrad"):
    """Gradient surgery: conflicting components are projected away (Yu et al., 2020).

    Every task and step has a new random order of the other tasks.
    """

    def start(self, objectives: int, seed: int) -> dict[str, Any]:
        return {"generator": generator(seed, self.name)}

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        weights = pcgrad_weights(gram, random_order(self.state["generator"], len(gram)))
        conflict = bool((gram < 0).any())
        return Combined(weights, "projected" if conflict else "no conflict")
