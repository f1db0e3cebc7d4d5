"""Pareto MTL (Lin et al., 2019): stay inside one cone of preference rays and descend there."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from common.settings import setting
from multitask.combiners.base import (
    Combined,
    WithPreference,
    preferences,
    trivial,
)
from multitask.combiners.mgda import min_norm_weights


def preference_rays(objectives: int, count: int) -> np.ndarray:
    """At least `count` preferences spread over the simplex, none of them zero: (rays, objectives).

    Two objectives: equal steps of the angle, the axes left out. More: the inner points of a simplex
    lattice (Das and Dennis, 1998), the coarsest with `count` points or more, so that no objective
    is preferred by the choice.
    """
    if objectives == 2:
        angles = np.arange(1, count + 1) * np.pi / 2 / (count + 1)
        rays = np.stack([np.cos(angles), np.sin(angles)], 1)
    else:
        steps = objectives
        while len(lattice := simplex_lattice(objectives, steps)) < count:
            steps += 1
        rays = lattice.astype(np.float64)
    return rays / rays.sum(1, keepdims=True)


def simplex_lattice(objectives: int, steps: int) -> np.ndarray:
    """All ways to write `steps` as a sum of `objectives` positive whole numbers."""
    cuts = combinations(range(1, steps), objectives - 1)
    return np.array([np.diff([0, *cut, steps]) for cut in cuts])


def cone_constraints(preference: np.ndarray, cones: int) -> np.ndarray:
    """Rows c with c . l <= 0 for all losses l in the cone of `preference` among evenly spread ones.

    A preference r names the loss ray u = 1 / r; l belongs to the ray with the largest u . l, so the
    rows are the differences of the other rays' unit vectors and its own, brought to unit length:
    then c . l / |l| is about the angle by which l lies outside.
    """
    others = 1 / preference_rays(len(preference), cones)
    own = 1 / preference
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    own /= np.linalg.norm(own)
    rows = others - own
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    other = lengths[:, 0] > 1e-9  # not the ray itself
    return rows[other] / lengths[other]


class ParetoMTL(WithPreference, name="pareto-mtl"):
    """Shortest direction in the hull of the objectives and of the constraints that are active.

    Outside the cone the violated constraints alone are descended (the paper's way to a feasible
    start), inside it objectives and constraints at the border together (its Eq. 11-13).
    """

    positive = sweeps = True
    border: ClassVar[float] = 1e-3  # radians from a cone's wall within which it is felt
    cones: Annotated[int, Meta(ge=2, le=100)] = setting(
        5, help="cones of the objectives' space", source="Lin et al., 2019, section 5"
    )

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        if found := trivial(gram):
            return found
        m = len(gram)
        rows = cone_constraints(preferences(self.preference, drawn), self.cones)
        excess = rows @ losses
        length = np.linalg.norm(losses)
        if (excess > self.border * length).any():
            status, parts = "into the cone", rows[excess > 0]
        else:
            status = "within the cone"
            parts = np.vstack([np.eye(m), rows[excess >= -self.border * length]])
        weights = min_norm_weights(parts @ gram @ parts.T) @ parts
        total = np.abs(weights).sum()
        if not total > 0:
            return Combined(np.ones(m), "degenerate")
        return Combined(weights / total * m, status)
