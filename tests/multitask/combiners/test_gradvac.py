"""GradVac: the paper's update in D dimensions, its targets, and gradients without an answer."""

import numpy as np
import pytest
import torch

from multitask.combiners import Setup, gradvac_weights, pcgrad_weights
from multitask.combiners.gradvac import LARGEST, RATE, GradVac
from multitask.combiners.pcgrad import random_order

pytestmark = pytest.mark.numeric


def cosine(p, g):
    return p @ g / (np.linalg.norm(p) * np.linalg.norm(g))


def align_explicitly(gradients, order, targets):
    """GradVac as the paper writes it, in D dimensions; also the cosines that it measures."""
    aligned, cosines = [], np.full(targets.shape, np.nan)
    for i, others in enumerate(order):
        p = gradients[i].copy()
        for j in others:
            g = gradients[j]
            c, t = cosine(p, g), targets[i, j]
            cosines[i, j] = c
            if c < t:
                top = np.linalg.norm(p) * (t * np.sqrt(1 - c**2) - c * np.sqrt(1 - t**2))
                p += top / (np.linalg.norm(g) * np.sqrt(1 - t**2)) * g
        aligned.append(p)
    return np.array(aligned), cosines


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e4])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_gradvac_on_the_gram_matrix_equals_the_papers_update_of_the_gradients(m, scale):
    random = np.random.default_rng(m)
    for _ in range(40):
        gradients = random.normal(size=(m, 7)) * scale * 10 ** random.uniform(-2, 2, (m, 1))
        order, targets = random_order(random, m), random.uniform(-0.9, 0.9, (m, m))
        expected, measured = align_explicitly(gradients, order, targets)
        gram = torch.from_numpy(gradients @ gradients.T)
        weights, cosines = gradvac_weights(gram, order, targets)
        lengths = np.linalg.norm(expected, axis=1).sum()
        assert np.linalg.norm(weights @ gradients - expected.sum(0)) <= 1e-9 * lengths
        np.testing.assert_allclose(cosines, measured, rtol=0, atol=1e-9)


def test_several_steps_equal_the_papers_with_running_targets():
    """Steps draw some of the objectives; the targets of the other pairs stay."""
    random, targets = np.random.default_rng(0), np.zeros((4, 4))
    combiner, orders = (GradVac().build(Setup(tuple("abcd"), seed=5)) for _ in range(2))
    for _ in range(60):
        drawn = np.sort(random.permutation(4)[: random.integers(2, 5)])
        gradients = random.normal(0.5, 1, (len(drawn), 6))
        order = random_order(orders.generator, len(drawn))
        pairs = np.ix_(drawn, drawn)
        expected, cosines = align_explicitly(gradients, order, targets[pairs])
        for (i, j), measured in np.ndenumerate(cosines):
            if i != j:
                old = targets[drawn[i], drawn[j]]
                targets[drawn[i], drawn[j]] = (1 - RATE) * old + RATE * measured
        found = combiner.combine(gradients @ gradients.T, np.ones(len(drawn)), drawn)
        np.testing.assert_allclose(found.weights @ gradients, expected.sum(0), rtol=0, atol=1e-9)
        np.testing.assert_allclose(combiner.targets, targets, rtol=0, atol=1e-12)
    assert (targets[~np.eye(4, dtype=bool)] > 0).all()


def test_two_objectives_follow_torchjds_gradvac():
    """With two there is only one order."""
    torchjd = pytest.importorskip("torchjd.aggregation")
    peer = torchjd.GradVacWeighting(beta=RATE, eps=0.0)
    combiner, random = GradVac().build(Setup(("a", "b"))), np.random.default_rng(1)
    for _ in range(100):
        gradients = random.normal(0.3, 1, (2, 5))
        gram = gradients @ gradients.T
        expected = peer(torch.from_numpy(gram)).numpy()
        np.testing.assert_allclose(combiner.combine(gram, np.ones(2), (0, 1)).weights, expected)


@pytest.mark.parametrize("target", [-0.5, 0.0, 0.3, 0.9])
def test_the_cosine_reaches_its_target_and_a_larger_one_stays(target):
    random, targets = np.random.default_rng(2), np.full((2, 2), target)
    for _ in range(100):
        one, other = gradients = random.normal(size=(2, 4))
        weights, cosines = gradvac_weights(gradients @ gradients.T, [[1], [0]], targets)
        expected = max(target, cosine(one, other))
        # One gets a multiple of other, which has the weight 1 besides; and the reverse.
        assert cosine(one + (weights[1] - 1) * other, other) == pytest.approx(expected)
        assert cosine(other + (weights[0] - 1) * one, one) == pytest.approx(expected)
        assert cosines[0, 1] == pytest.approx(cosine(one, other))


def test_with_targets_of_zero_it_is_pcgrad():
    random = np.random.default_rng(3)
    for _ in range(50):
        gradients = random.normal(size=(4, 6))
        gram, order = gradients @ gradients.T, random_order(random, 4)
        weights, _ = gradvac_weights(gram, order, np.zeros((4, 4)))
        np.testing.assert_allclose(weights, pcgrad_weights(gram, order), rtol=1e-9)


def test_gradvac_is_equivariant_under_renaming_of_the_tasks():
    random = np.random.default_rng(4)
    for _ in range(100):
        gradients, targets = random.normal(size=(4, 5)), random.uniform(-0.5, 0.9, (4, 4))
        order, renamed = random_order(random, 4), random.permutation(4)
        place = np.argsort(renamed)  # new task k is old task renamed[k]
        new_order = [[int(place[j]) for j in order[old]] for old in renamed]
        gram, both = gradients @ gradients.T, np.ix_(renamed, renamed)
        weights, cosines = gradvac_weights(gram, order, targets)
        new_weights, new_cosines = gradvac_weights(gram[both], new_order, targets[both])
        np.testing.assert_allclose(new_weights, weights[renamed], rtol=1e-9)
        np.testing.assert_allclose(new_cosines, cosines[both], rtol=1e-9)


def test_opposite_gradients_become_zero_and_have_no_further_cosine():
    gradients = np.array([[1.0, 2.0], [-2.0, -4.0], [3.0, 1.0]])
    targets = np.full((3, 3), 0.5)
    weights, cosines = gradvac_weights(gradients @ gradients.T, [[1, 2], [0, 2], [0, 1]], targets)
    assert np.isfinite(weights).all()
    assert cosines[0, 1] == pytest.approx(-1)
    assert np.isnan(cosines[0, 2])
    assert np.isnan(np.diag(cosines)).all()


def test_parallel_gradients_reach_any_target():
    gradients = np.array([[1.0, 2.0], [2.0, 4.0]])
    targets = np.ones((2, 2))  # counts as `LARGEST`
    weights, cosines = gradvac_weights(gradients @ gradients.T, [[1], [0]], targets)
    assert weights.tolist() == [1, 1]
    np.testing.assert_allclose(cosines[[0, 1], [1, 0]], 1)
    aside = np.array([[1.0, 2.0], [2.0, 3.0]])
    weights, _ = gradvac_weights(aside @ aside.T, [[1], [0]], targets)
    assert cosine(aside[0] + (weights[1] - 1) * aside[1], aside[1]) == pytest.approx(LARGEST)


def test_a_zero_gradient_changes_neither_the_others_nor_the_targets():
    gradients = np.array([[1.0, -2.0], [0.0, 0.0], [-1.0, 1.0]])
    combiner = GradVac().build(Setup(tuple("abc")))
    found = combiner.combine(gradients @ gradients.T, np.ones(3), range(3))
    pair = gradients[[0, 2]]
    without, _ = gradvac_weights(pair @ pair.T, [[1], [0]], np.zeros((2, 2)))
    np.testing.assert_allclose(found.weights[[0, 2]], without)
    assert not combiner.targets[1].any()
    assert not combiner.targets[:, 1].any()
    assert combiner.targets[0, 2] < 0


def test_the_status_reports_changes():
    combiner = GradVac().build(Setup(("a", "b")))
    conflict = np.array([[1.0, -0.5], [-0.5, 1.0]])
    assert combiner.combine(np.eye(2), np.ones(2), (0, 1)).status == "targets reached"
    assert combiner.combine(conflict, np.ones(2), (0, 1)).status == "aligned"
    assert combiner.combine(np.eye(1), np.ones(1), (1,)).status == "one objective"
    assert combiner.combine(np.zeros((2, 2)), np.ones(2), (0, 1)).status == "no gradient"


@pytest.mark.parametrize("order", [[[1]], [[0], [0]], [[1], []], [[1, 1], [0]]])
def test_gradvac_refuses_an_order_that_does_not_name_each_other_task_once(order):
    with pytest.raises(ValueError, match="order"):
        gradvac_weights(np.eye(2), order, np.zeros((2, 2)))
