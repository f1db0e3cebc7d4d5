"""Losses of imbalanced classes, against plain double loops in float64."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from loss_cases import every_batch, mean, sigmoid
from torch.autograd import gradcheck

from losses import (
    balanced_weights,
    binary_logit_adjusted_loss,
    effective_weights,
    focal_loss,
    logit_adjusted_loss,
    sigmoid_focal_loss,
    weighted_binary_cross_entropy,
    weighted_cross_entropy,
)
from tests.tolerances import assert_near

pytestmark = pytest.mark.numeric
CLASSES = 4
WEIGHTS = [0.5, 3.0, 1.0, 2.0]
PRIORS = [0.6, 0.05, 0.25, 0.1]
GAMMAS = pytest.mark.parametrize("gamma", [0, 0.5, 2, 5])


def outputs(count, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return torch.randn(count, CLASSES, dtype=dtype) * 3


def several(count, dtype=torch.float64):
    torch.manual_seed(1)
    return (torch.rand(count, CLASSES) > 0.7).to(dtype)


def float64(values):
    return torch.tensor(values, dtype=torch.float64)


def of_classes(logits, labels, gamma=0, weights=(1,) * CLASSES, shift=(0,) * CLASSES):
    """The mean of -w_y (1 - p_y)^gamma log p_y, with logits shifted by class."""
    terms = []
    for row, y in zip(logits.tolist(), labels, strict=True):
        shares = [math.exp(x + shift[k]) for k, x in enumerate(row)]
        p = shares[y] / sum(shares)
        terms.append(-weights[y] * (1 - p) ** gamma * math.log(p))
    return mean(terms)


def of_labels(logits, targets, gamma=0, weights=(1,) * CLASSES, shift=(0,) * CLASSES):
    """The mean of the same terms of each label, whose weight is that of its presence."""
    terms = []
    for row, present in zip(logits.tolist(), targets.tolist(), strict=True):
        for k, x in enumerate(row):
            p = sigmoid(x + shift[k]) if present[k] else 1 - sigmoid(x + shift[k])
            terms.append(-(weights[k] if present[k] else 1) * (1 - p) ** gamma * math.log(p))
    return mean(terms)


def test_weights_are_those_of_the_formulas():
    counts = [60, 5, 25, 10]
    balanced = [sum(counts) / (len(counts) * n) for n in counts]
    assert balanced_weights(float64(counts)).tolist() == pytest.approx(balanced, rel=1e-14)
    for beta in (0.0, 0.9, 0.999):
        raw = [(1 - beta) / (1 - beta**n) for n in counts]
        expected = [one / mean(raw) for one in raw]
        assert effective_weights(float64(counts), beta).tolist() == pytest.approx(expected, 1e-12)
    assert effective_weights(float64(counts), 0.0).tolist() == [1.0] * 4


def test_effective_weights_approach_balanced_ones():
    counts = float64([60, 5, 25, 10])
    near = effective_weights(counts, 1 - 1e-9)
    balanced = balanced_weights(counts)
    torch.testing.assert_close(near, balanced / balanced.mean(), rtol=1e-6, atol=0)


def test_balanced_weights_are_scikit_learns():
    from sklearn.utils.class_weight import compute_class_weight

    labels = [0] * 7 + [1] + [2] * 4
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    counts = torch.bincount(torch.tensor(labels)).double()
    assert balanced_weights(counts).tolist() == pytest.approx(expected.tolist(), rel=1e-14)


@pytest.mark.parametrize("weights_of", [balanced_weights, effective_weights])
def test_a_class_without_examples_changes_no_other_weight(weights_of):
    with_gap = weights_of(float64([[6, 0, 2], [0, 0, 0]]))
    assert with_gap[0, [0, 2]].tolist() == weights_of(float64([6, 2])).tolist()
    assert with_gap[0, 1] == 1
    assert with_gap[1].tolist() == [1, 1, 1]


@every_batch
@GAMMAS
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=str)
def test_focal_loss(labels, gamma, weights):
    logits, y = outputs(len(labels)).requires_grad_(), torch.tensor(labels)
    tensor = None if weights is None else float64(weights)
    found = focal_loss(logits, y, gamma, tensor)
    expected = of_classes(logits, labels, gamma, weights or (1,) * CLASSES)
    assert found.item() == pytest.approx(expected, rel=1e-12)
    assert gradcheck(lambda x: focal_loss(x, y, gamma, tensor), logits)


@GAMMAS
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=str)
def test_focal_loss_of_several_labels(gamma, weights):
    logits, targets = outputs(6).requires_grad_(), several(6)
    tensor = None if weights is None else float64(weights)
    found = sigmoid_focal_loss(logits, targets, gamma, tensor)
    expected = of_labels(logits, targets, gamma, weights or (1,) * CLASSES)
    assert found.item() == pytest.approx(expected, rel=1e-12)
    assert gradcheck(lambda x: sigmoid_focal_loss(x, targets, gamma, tensor), logits)


@every_batch
def test_weighted_cross_entropy_is_a_mean_over_examples(labels):
    logits, y = outputs(len(labels)).requires_grad_(), torch.tensor(labels)
    found = weighted_cross_entropy(logits, y, float64(WEIGHTS))
    assert found.item() == pytest.approx(of_classes(logits, labels, 0, WEIGHTS), rel=1e-12)
    assert gradcheck(lambda x: weighted_cross_entropy(x, y, float64(WEIGHTS)), logits)
    several_labels = several(len(labels))
    found = weighted_binary_cross_entropy(logits, several_labels, float64(WEIGHTS))
    expected = of_labels(logits, several_labels, 0, WEIGHTS)
    assert found.item() == pytest.approx(expected, rel=1e-12)


@every_batch
@pytest.mark.parametrize("tau", [0, 0.5, 1, 2])
def test_logit_adjustment_adds_the_logarithms_of_the_priors(labels, tau):
    logits, y = outputs(len(labels)).requires_grad_(), torch.tensor(labels)
    shift = [tau * math.log(prior) for prior in PRIORS]
    found = logit_adjusted_loss(logits, y, float64(PRIORS), tau)
    assert found.item() == pytest.approx(of_classes(logits, labels, shift=shift), rel=1e-12)
    assert gradcheck(lambda x: logit_adjusted_loss(x, y, float64(PRIORS), tau), logits)
    targets = several(len(labels))
    shift = [tau * math.log(prior / (1 - prior)) for prior in PRIORS]
    found = binary_logit_adjusted_loss(logits, targets, float64(PRIORS), tau)
    assert found.item() == pytest.approx(of_labels(logits, targets, shift=shift), rel=1e-12)
    assert gradcheck(lambda x: binary_logit_adjusted_loss(x, targets, float64(PRIORS), tau), logits)


def test_two_classes_and_one_label_are_the_same_problem():
    """A label with the logit z is two classes with the logits 0 and z, in every loss."""
    torch.manual_seed(0)
    z, y = torch.randn(9, 1, dtype=torch.float64), torch.tensor([0, 1, 0, 0, 1, 0, 1, 1, 0])
    logits, targets = torch.cat([torch.zeros_like(z), z], 1), y[:, None].double()
    for one, other in (
        (focal_loss(logits, y, 2), sigmoid_focal_loss(z, targets, 2)),
        (
            logit_adjusted_loss(logits, y, float64([0.8, 0.2]), 1),
            binary_logit_adjusted_loss(z, targets, float64([0.2]), 1),
        ),
        (
            weighted_cross_entropy(logits, y, float64([1, 3])),
            weighted_binary_cross_entropy(z, targets, float64([3])),
        ),
    ):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=0)


@pytest.mark.parametrize("seed", range(3))
def test_neutral_settings_are_plain_cross_entropy(seed):
    """Equal counts, gamma = 0 and tau = 0 change nothing but the order of a sum, in float32."""
    logits, y = outputs(64, torch.float32, seed), torch.arange(64) % CLASSES
    targets, ones = several(64, torch.float32), torch.ones(CLASSES)
    priors = torch.full((CLASSES,), 1 / CLASSES)
    plain, binary = F.cross_entropy, F.binary_cross_entropy_with_logits
    weights = balanced_weights(torch.bincount(y).double()).float()
    assert torch.equal(weights, ones)
    for found in (
        weighted_cross_entropy(logits, y, weights),
        focal_loss(logits, y, 0),
        focal_loss(logits, y, 0, weights),
        logit_adjusted_loss(logits, y, priors, 0),
    ):
        assert_near(found, plain(logits, y), terms=64 + CLASSES)
    for found in (
        weighted_binary_cross_entropy(logits, targets, ones),
        sigmoid_focal_loss(logits, targets, 0),
        sigmoid_focal_loss(logits, targets, 0, ones),
        binary_logit_adjusted_loss(logits, targets, priors, 0),
    ):
        assert_near(found, binary(logits, targets), terms=64 * CLASSES)


@GAMMAS
@pytest.mark.parametrize("size", [0.0, 20.0, 200.0, 1e4])
def test_focal_losses_are_finite_where_a_probability_is_rounded_to_one(gamma, size):
    signs = torch.tensor([[1.0, -1, -1, -1], [-1, 1, 1, -1]])
    logits = (size * signs).requires_grad_()
    for labels in ([0, 1], [1, 0]):
        for loss in (
            focal_loss(logits, torch.tensor(labels), gamma),
            sigmoid_focal_loss(logits, F.one_hot(torch.tensor(labels), CLASSES).float(), gamma),
        ):
            (gradient,) = torch.autograd.grad(loss, logits)
            assert loss.isfinite()
            assert gradient.isfinite().all()
