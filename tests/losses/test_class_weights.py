"""Class weights and weighted losses, against plain double loops in float64."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from loss_cases import every_batch, mean, sigmoid
from torch.autograd import gradcheck

from losses import balanced_weights, weighted_binary_cross_entropy, weighted_cross_entropy
from tests.tolerances import assert_near

pytestmark = pytest.mark.numeric
CLASSES = 4
WEIGHTS = [0.5, 3.0, 1.0, 2.0]


def outputs(count, dtype=torch.float64, seed=0):
    torch.manual_seed(seed)
    return torch.randn(count, CLASSES, dtype=dtype) * 3


def several(count, dtype=torch.float64):
    torch.manual_seed(1)
    return (torch.rand(count, CLASSES) > 0.7).to(dtype)


def float64(values):
    return torch.tensor(values, dtype=torch.float64)


def of_classes(logits, labels):
    """The mean of -w_y log p_y."""
    terms = []
    for row, y in zip(logits.tolist(), labels, strict=True):
        shares = [math.exp(x) for x in row]
        terms.append(-WEIGHTS[y] * math.log(shares[y] / sum(shares)))
    return mean(terms)


def of_labels(logits, targets):
    """The mean of the same terms of each label, whose weight is that of its presence."""
    terms = []
    for row, present in zip(logits.tolist(), targets.tolist(), strict=True):
        for k, x in enumerate(row):
            p = sigmoid(x) if present[k] else 1 - sigmoid(x)
            terms.append(-(WEIGHTS[k] if present[k] else 1) * math.log(p))
    return mean(terms)


def test_balanced_weights_are_scikit_learns():
    from sklearn.utils.class_weight import compute_class_weight

    labels = [0] * 7 + [1] + [2] * 4
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    counts = torch.bincount(torch.tensor(labels)).double()
    assert balanced_weights(counts).tolist() == pytest.approx(expected.tolist(), rel=1e-14)


def test_a_class_without_examples_changes_no_other_weight():
    with_gap = balanced_weights(float64([[6, 0, 2], [0, 0, 0]]))
    assert with_gap[0, [0, 2]].tolist() == balanced_weights(float64([6, 2])).tolist()
    assert with_gap[0, 1] == 1
    assert with_gap[1].tolist() == [1, 1, 1]


@every_batch
def test_weighted_cross_entropy_is_a_mean_over_examples(labels):
    logits, y = outputs(len(labels)).requires_grad_(), torch.tensor(labels)
    found = weighted_cross_entropy(logits, y, float64(WEIGHTS))
    assert found.item() == pytest.approx(of_classes(logits, labels), rel=1e-12)
    assert gradcheck(lambda x: weighted_cross_entropy(x, y, float64(WEIGHTS)), logits)
    several_labels = several(len(labels))
    found = weighted_binary_cross_entropy(logits, several_labels, float64(WEIGHTS))
    assert found.item() == pytest.approx(of_labels(logits, several_labels), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_equal_counts_are_plain_cross_entropy(seed):
    logits, y = outputs(64, torch.float32, seed), torch.arange(64) % CLASSES
    weights = balanced_weights(torch.bincount(y).double()).float()
    assert torch.equal(weights, torch.ones(CLASSES))
    found = weighted_cross_entropy(logits, y, weights)
    assert_near(found, F.cross_entropy(logits, y), terms=64 + CLASSES)
    targets = several(64, torch.float32)
    found = weighted_binary_cross_entropy(logits, targets, weights)
    expected = F.binary_cross_entropy_with_logits(logits, targets)
    assert_near(found, expected, terms=64 * CLASSES)
