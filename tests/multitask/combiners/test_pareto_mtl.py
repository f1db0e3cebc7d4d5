"""Pareto MTL: rays, cones, and where it leads."""

import numpy as np
import pytest

from multitask.combiners import COMBINERS, Setup
from multitask.combiners.pareto_mtl import cone_constraints, preference_rays


@pytest.mark.parametrize(("objectives", "count"), [(2, 1), (2, 9), (3, 5), (3, 9), (4, 7)])
def test_rays_are_positive_distinct_and_closed_under_renaming(objectives, count):
    rays = preference_rays(objectives, count)
    assert len(rays) >= count
    assert (rays > 0).all()
    np.testing.assert_allclose(rays.sum(1), 1)
    rows = {tuple(ray.round(9)) for ray in rays}
    assert len(rows) == len(rays)
    assert {row[::-1] for row in rows} == rows


def test_two_objectives_have_rays_at_equal_angles():
    angles = np.arctan2(*preference_rays(2, 3).T[::-1])
    np.testing.assert_allclose(angles, np.pi / 8 * np.arange(1, 4))


def test_a_cone_holds_its_own_loss_ray_and_no_other():
    rays = preference_rays(2, 5)
    for index, ray in enumerate(rays):
        rows = cone_constraints(ray, 5)
        assert len(rows) == 4
        inside = [(rows @ (1 / other) <= 1e-12).all() for other in rays]
        assert inside == [i == index for i in range(5)]


def test_outside_its_cone_it_moves_towards_it_and_inside_it_descends():
    combiner = COMBINERS["pareto-mtl"](Setup(("a", "b"), preference=(0.5, 0.5), cones=5))
    gradients = np.array([[1.0, 0.0], [0.0, 1.0]])
    gram = gradients @ gradients.T
    outside = combiner.combine(gram, np.array([3.0, 0.1]), (0, 1))
    assert outside.status == "into the cone"
    change = -gradients @ (outside.weights @ gradients)
    assert change[0] < 0 < change[1]
    inside = combiner.combine(gram, np.array([1.0, 1.0]), (0, 1))
    assert inside.status == "within the cone"
    assert (gradients @ (inside.weights @ gradients) > 0).all()
