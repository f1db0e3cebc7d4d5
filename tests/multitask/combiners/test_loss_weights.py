"""Combiners that need only the losses, against their papers' formulas."""

import numpy as np
import pytest
import torch

from multitask.combiners import DynamicAverage, GeometricMean, RandomWeights, Setup
from multitask.combiners.loss_weights import geometric_weights, tchebycheff_weights

LOSSES = np.array([0.5, 2.0, 3.0])
SETUP = Setup(("a", "b", "c"), seed=3)


def gradient(function):
    """The gradient of a scalar function of the losses, by autograd."""
    losses = torch.tensor(LOSSES, requires_grad=True)
    function(losses).backward()
    return losses.grad.numpy()


def test_geometric_mean_has_the_weights_of_its_gradient():
    expected = gradient(lambda losses: losses.prod() ** (1 / 3))
    np.testing.assert_allclose(geometric_weights(LOSSES), expected, rtol=1e-12)
    scaled = GeometricMean().combine(None, LOSSES * [1, 10, 1], range(3)).weights
    np.testing.assert_allclose(scaled[1] / scaled[0], 0.5 / 20, rtol=1e-12)
    assert np.isfinite(geometric_weights(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_smooth_tchebycheff_has_the_weights_of_its_gradient(mu):
    preference = np.array([1.5, 0.9, 0.6])
    expected = gradient(
        lambda losses: mu * torch.logsumexp(torch.tensor(preference) * losses / mu, 0)
    )
    found = tchebycheff_weights(LOSSES, preference, mu)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_random_weights_are_positive_and_add_up_to_their_number():
    combiner = RandomWeights().build(SETUP)
    found = [combiner.combine(None, LOSSES, range(3)).weights for _ in range(2000)]
    assert (np.array(found) > 0).all()
    np.testing.assert_allclose(np.sum(found, 1), 3)
    np.testing.assert_allclose(np.mean(found, 0), 1, atol=0.1)
    assert len(combiner.combine(None, LOSSES[:2], (0, 2)).weights) == 2


def test_dynamic_average_weighs_by_the_ratio_of_the_last_two_epochs():
    combiner = DynamicAverage().build(SETUP)
    for epoch in ([4.0, 2.0], [2.0, 1.8]):
        for _ in range(2):
            assert combiner.combine(None, np.array(epoch), (0, 2)).weights.tolist() == [1, 1]
        combiner.end_epoch()
    ratios = np.array([0.5, 1.0, 0.9])  # the second objective had no batches
    expected = 3 * np.exp(ratios / 2) / np.exp(ratios / 2).sum()
    again = DynamicAverage().build(SETUP)
    again.load_state_dict(combiner.state_dict())
    for one in (combiner, again):
        np.testing.assert_allclose(one.combine(None, LOSSES, range(3)).weights, expected)
