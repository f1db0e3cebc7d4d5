"""Pareto MTL: rays, cones, and where it leads."""

import numpy as np
import pytest

from multitask.combiners import Scaled, Setup
from multitask.combiners.pareto_mtl import ParetoMTL, cone_constraints, preference_rays
from multitask.settings.methods import methods

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize(("objectives", "count"), [(2, 1), (2, 9), (3, 5), (3, 9), (4, 7)])
def test_rays_are_positive_distinct_and_closed_under_renaming(objectives, count):
    rays = preference_rays(objectives, count)
    assert len(rays) >= count
    assert (rays > 0).all()
    np.testing.assert_allclose(rays.sum(1), 1)
    rows = {tuple(ray.round(9)) for ray in rays}
    assert len(rows) == len(rays)
    assert {row[::-1] for row in rows} == rows
    if objectives == 2:
        angles = np.sort(np.arctan2(*rays.T))
        np.testing.assert_allclose(angles, np.pi / 2 / (count + 1) * np.arange(1, count + 1))


def test_a_cone_holds_its_own_loss_ray_and_no_other():
    rays = preference_rays(2, 5)
    for index, ray in enumerate(rays):
        rows = cone_constraints(ray, 5)
        assert len(rows) == 4
        inside = [(rows @ (1 / other) <= 1e-12).all() for other in rays]
        assert inside == [i == index for i in range(5)]


@pytest.mark.parametrize("count", [5, 20, 50, 100])
def test_the_walls_of_a_cone_are_where_they_should_be_however_many_there_are(count):
    rays = preference_rays(2, count)
    middle = count // 2
    combiner = ParetoMTL(preference=tuple(rays[middle]), cones=count).build(Setup(("a", "b")))
    spacing = np.pi / 2 / (count + 1)
    own = np.arctan2(*(1 / rays[middle])[::-1])
    for offset in (-0.4, 0.4, -0.7, 0.7):
        angle = own + offset * spacing
        losses = np.array([np.cos(angle), np.sin(angle)])
        status = combiner.combine(np.eye(2), losses, (0, 1)).status
        assert status == ("within the cone" if abs(offset) < 0.5 else "into the cone")


def test_scaled_objectives_have_the_same_weights_up_to_their_units():
    random = np.random.default_rng(0)
    for name in ("epo", "pareto-mtl", "linear", "mgda"):
        gradients, losses = random.normal(size=(2, 5)), random.uniform(0.2, 1, 2)
        sizes = np.array([1.0, 50.0])
        combiner = methods("combiner")[name]
        wish = {"preference": (0.4, 0.6)} if "preference" in combiner.by_key() else {}
        own, inner = (combiner(**wish).build(Setup(("a", "b"))) for _ in range(2))
        plain = own.combine(gradients @ gradients.T, losses, (0, 1))
        scaled = Scaled(inner, sizes)
        rows = gradients * sizes[:, None]
        found = scaled.combine(rows @ rows.T, losses * sizes, (0, 1))
        one, other = plain.weights @ gradients, found.weights @ rows
        assert one @ other == pytest.approx(np.linalg.norm(one) * np.linalg.norm(other))
        assert np.abs(found.weights).sum() == pytest.approx(np.abs(plain.weights).sum())
        assert found.status == plain.status


def test_outside_its_cone_it_moves_towards_it_and_inside_it_descends():
    combiner = ParetoMTL(preference=(0.5, 0.5), cones=5).build(Setup(("a", "b")))
    gradients = np.array([[1.0, 0.0], [0.0, 1.0]])
    gram = gradients @ gradients.T
    outside = combiner.combine(gram, np.array([3.0, 0.1]), (0, 1))
    assert outside.status == "into the cone"
    change = -gradients @ (outside.weights @ gradients)
    assert change[0] < 0 < change[1]
    inside = combiner.combine(gram, np.array([1.0, 1.0]), (0, 1))
    assert inside.status == "within the cone"
    assert (gradients @ (inside.weights @ gradients) > 0).all()
