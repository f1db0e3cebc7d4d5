"""GradVac, Gradient Vaccine (Wang et al., 2021, Algorithm 1), computed from the Gram matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.random_generators import generator
from multitask.combiners.base import Combined, Combiner, Setup, trivial
from multitask.combiners.pcgrad import check_order, random_order

RATE = 0.01  # of the targets (beta in the paper)
LARGEST = 0.999  # largest target: to reach 1, the change of a gradient would have to be infinite


def gradvac_weights(
    gram: Any, order: Sequence[Sequence[int]], targets: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the original gradients in the *sum* of the changed ones, and cosines.

    Gradient Vaccine (Wang et al., 2021, Algorithm 1).

    Gradient i meets the other tasks in the order `order[i]`. If the cosine c of its current value p
    and the original g_j is below the target t, a multiple of g_j is added so that the cosine is t:

        p + |p| (t sqrt(1 - c^2) - c sqrt(1 - t^2)) / (|g_j| sqrt(1 - t^2)) g_j

    p remains a combination of the original gradients, so that only their inner products are needed.
    A gradient opposite to g_j (c = -1) becomes zero, because it cannot reach a target.

    Args:
        gram: (m, m) inner products of the m gradients; array or tensor.
        order: m orders of the other tasks' indices.
        targets: (m, m) targets, row i for gradient i; a target above `LARGEST` counts as `LARGEST`.

    Returns:
        float64 (m,): `weights @ G` is the sum over i of the changed gradients.
        float64 (m, m): each cosine before the change; NaN if a gradient is zero, and on the
        diagonal.
    """
    matrix = np.asarray(gram, np.float64)
    check_order(matrix, order)
    goals = np.minimum(np.asarray(targets, np.float64), LARGEST)
    m = len(matrix)
    lengths = np.sqrt(np.maximum(np.diag(matrix), 0))
    changed, cosines = np.eye(m), np.full((m, m), np.nan)
    for i, others in enumerate(order):
        for j in others:
            p = changed[i]
            length = np.sqrt(squared_length(p, matrix))
            if length == 0 or lengths[j] == 0:
                continue
            cosine = np.clip(p @ matrix[:, j] / (length * lengths[j]), -1, 1)
            cosines[i, j] = cosine
            goal = goals[i, j]
            if cosine < goal:
                sine, wanted = np.sqrt(1 - cosine**2), np.sqrt(1 - goal**2)
                p[j] += length * (goal * sine - cosine * wanted) / (lengths[j] * wanted)
    return changed.sum(0), cosines


def squared_length(p: np.ndarray, gram: np.ndarray) -> float:
    """Return |p @ G|^2; 0 if it is within the rounding error of its sum of m x m products."""
    square = p @ gram @ p
    rounding = gram.size * np.finfo(np.float64).eps * (np.abs(p) @ np.abs(gram) @ np.abs(p))
    return float(square) if square > rounding else 0.0


class GradVac(Combiner, name="gradvac"):
    """Gradient Vaccine: gradients keep at least their usual cosines (Wang et al., 2021)."""

    def build(self, setup: Setup) -> Targets:
        return Targets(len(setup.objectives), generator(setup.seed, self.name))


class Targets:
    """Targets of all pairs of a run's objectives: running means of their cosines, from 0.

    A step updates the pairs drawn for it. The first step is one of PCGrad: a target of 0 removes
    conflicts. All shared parameters are one group, `whole_model` in the paper.
    """

    needs_rows = True

    def __init__(self, objectives: int, generator: np.random.Generator) -> None:
        self.targets, self.generator = np.zeros((objectives, objectives)), generator

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        if found := trivial(gram):
            return found
        pairs = np.ix_(drawn, drawn)
        targets, order = self.targets[pairs], random_order(self.generator, len(gram))
        weights, cosines = gradvac_weights(gram, order, targets)
        known = np.where(np.isnan(cosines), targets, cosines)
        self.targets[pairs] = (1 - RATE) * targets + RATE * known
        return Combined(weights, "aligned" if (weights != 1).any() else "targets reached")

    def state_dict(self) -> dict[str, Any]:
        state = dict(self.generator.bit_generator.state)
        return {"targets": self.targets.tolist(), "generator": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.targets = np.asarray(state["targets"], np.float64)
        self.generator.bit_generator.state = state["generator"]
