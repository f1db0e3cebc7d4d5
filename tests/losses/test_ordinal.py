"""Losses of ordered classes, against plain double loops in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from loss_cases import every_batch, mean, sigmoid

from losses import corn_log_probabilities, corn_loss, distance_loss
from tests.tolerances import assert_near

pytestmark = pytest.mark.numeric
CLASSES = 5


def outputs(count, width, seed=0, dtype=torch.float64):
    torch.manual_seed(seed)
    return torch.randn(count, width, dtype=dtype) * 3


def decisions(logits, labels):
    """The binary cross-entropies of CORN, a list of the examples of a subset per decision."""
    found = []
    for k in range(CLASSES - 1):
        subset = [(row[k], y) for row, y in zip(logits, labels, strict=True) if y >= k]
        found.append([-math.log(sigmoid(x) if y > k else 1 - sigmoid(x)) for x, y in subset])
    return found


@every_batch
@pytest.mark.parametrize("shift", [0, 2])
def test_corn_sums_conditional_decisions(labels, shift):
    labels = [label + shift for label in labels]  # also the last class, which decides in no subset
    logits = outputs(len(labels), CLASSES - 1).requires_grad_()
    subsets = decisions(logits.tolist(), labels)
    whole, y = sum(map(sum, subsets)), torch.tensor(labels)
    loss = corn_loss(logits, y)
    assert loss.item() == pytest.approx(whole / len(labels), rel=1e-12)
    loss.backward()
    for i, (row, label) in enumerate(zip(logits.tolist(), labels, strict=True)):
        for k in range(CLASSES - 1):
            expected = (sigmoid(row[k]) - (label > k)) / len(labels) if label >= k else 0.0
            assert logits.grad[i, k].item() == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_corn_has_the_value_of_the_authors_code():
    torch.manual_seed(123)  # the example in the documentation of coral-pytorch
    texts, labels = torch.rand(8, 99), torch.tensor([0, 1, 2, 2, 2, 3, 4, 4])
    logits = torch.nn.Linear(99, 4)(texts)
    decided = (labels + 1).clamp(max=4).sum()  # the authors divide by the sizes of all subsets
    whole = F.nll_loss(corn_log_probabilities(logits), labels, reduction="sum")
    assert (whole / decided).item() == pytest.approx(0.7127, abs=5e-5)


def test_the_probabilities_of_corn_are_chained_products_and_add_up_to_one():
    logits = outputs(20, CLASSES - 1)
    found = corn_log_probabilities(logits).exp()
    for row, probabilities in zip(logits.tolist(), found.tolist(), strict=True):
        above = [1.0]  # P(class >= k)
        for x in row:
            above.append(above[-1] * sigmoid(x))
        above.append(0.0)
        expected = [above[k] - above[k + 1] for k in range(CLASSES)]
        assert probabilities == pytest.approx(expected, rel=1e-9, abs=1e-14)
    far = outputs(50, CLASSES - 1, seed=1, dtype=torch.float32) * 40
    sums = corn_log_probabilities(far).exp().sum(-1)
    assert_near(sums, torch.ones(50), terms=3 * CLASSES)


@every_batch
def test_soft_labels_by_distance(labels):
    logits = outputs(len(labels), CLASSES)
    terms = []
    for row, label in zip(logits.tolist(), labels, strict=True):
        total = math.log(sum(map(math.exp, row)))
        weights = [math.exp(-abs(j - label)) for j in range(CLASSES)]
        parts = zip(weights, row, strict=True)
        terms.append(sum(w / sum(weights) * (total - x) for w, x in parts))
    assert distance_loss(logits, torch.tensor(labels)).item() == pytest.approx(
        mean(terms), rel=1e-12
    )


def test_far_logits_give_finite_gradients():
    logits = torch.tensor([[300.0, -300.0, 300.0, -300.0]], requires_grad=True)
    for label in range(CLASSES):
        (gradient,) = torch.autograd.grad(corn_loss(logits, torch.tensor([label])), logits)
        assert gradient.isfinite().all()
