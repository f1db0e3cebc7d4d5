"""Pareto MTL (Lin et al., 2019): descent inside one cone of preference rays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from common.settings import setting
from multitask.combiners.base import Combined, WithPreference, check_losses, preferences, trivial
from multitask.combiners.mgda import min_norm_weights


def preference_rays(objectives: int, count: int) -> np.ndarray:
    """Return at least `count` positive preferences spread over the simplex: (rays, objectives).

    For two objectives the angles are equally spaced, without the axes. For more, the rays are the
    inner points of the coarsest simplex lattice with at least `count` points (Das and Dennis,
    1998), so that the choice favours no objective.
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
    """Return all ways to write `steps` as a sum of `objectives` positive integers."""
    cuts = combinations(range(1, steps), objectives - 1)
    return np.array([np.diff([0, *cut, steps]) for cut in cuts])


def cone_constraints(preference: np.ndarray, cones: int) -> np.ndarray:
    """Return rows c with c . l <= 0 for all losses l in the cone of `preference`.

    A preference r defines the loss ray u = 1 / r, and l belongs to the ray with the largest u . l.
    The rows are the differences between the unit vectors of the other, evenly spread rays and its
    own, scaled to unit length, so that c . l / |l| is about the angle by which l lies outside.
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
    """Shortest direction in the hull of the objectives and of the active constraints.

    Outside the cone, only the violated constraints are descended (the paper's search for a feasible
    start). Inside it, the objectives and the constraints at the border are (its Eq. 11-13).
    """

    positive = sweeps = True
    border: ClassVar[float] = 1e-3  # radians from a wall of the cone within which it is active
    cones: Annotated[int, Meta(ge=2, le=100)] = setting(
        5, help="cones that divide the space of losses", source="Lin et al., 2019, section 5"
    )

    def combine(self, gram: np.ndarray, losses: np.ndarray, drawn: Sequence[int]) -> Combined:
        check_losses(self.name, losses, drawn)
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
