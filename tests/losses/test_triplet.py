"""Triplet and N-pair loss: golden values and plain loops, also for batches without terms."""

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from loss_cases import drawn, every_batch, mean, tensor

from losses import NPair, npair_loss, triplet_loss

pytestmark = pytest.mark.numeric


def texts_of(inputs):
    return tensor(inputs["embeddings"]), torch.tensor(inputs["labels"])


@golden_cases("triplet")
@pytest.mark.parametrize("reduction", ["active", "all"])
def test_triplets_have_the_golden_values(case, reduction):
    inputs = case["inputs"]
    settings = (inputs[key] for key in ("margin", "distance_power", "normalise"))
    found = triplet_loss(*texts_of(inputs), *settings, reduction)
    assert found.item() == pytest.approx(case["expected"][f"mean_{reduction}"], rel=1e-9)


@golden_cases("npair")
def test_npairs_have_the_golden_values(case):
    found = npair_loss(*texts_of(case["inputs"]), case["inputs"]["normalise"])
    assert found.item() == pytest.approx(case["expected"]["loss"], rel=1e-9, abs=1e-12)


@every_batch
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("margin", [0.05, 0.5])
def test_triplets_and_their_gradient_equal_plain_loops(labels, power, margin):
    x, y = drawn(labels)
    x.requires_grad_()
    unit = F.normalize(x, dim=1)
    terms = [
        (unit[a] - unit[p]).norm() ** power - (unit[a] - unit[n]).norm() ** power + margin
        for a, p, n in itertools.product(range(len(x)), repeat=3)
        if a != p and y[a] == y[p] and y[a] != y[n]
    ]
    active = [term for term in terms if term > 0]
    expected = {"active": mean(active), "all": sum(active) / len(terms) if terms else 0.0}
    for reduction, value in expected.items():
        found = triplet_loss(x, y, margin, power, reduction=reduction)
        assert found.item() == pytest.approx(torch.as_tensor(value).item(), rel=1e-9)
        if active:
            gradients = (torch.autograd.grad(v, x, retain_graph=True)[0] for v in (found, value))
            torch.testing.assert_close(*gradients)


def test_npairs_equal_a_plain_loop():
    x, y = drawn([2, 0, 1, 0, 2, 1, 1, 3])
    pairs = [[i for i in range(len(y)) if y[i] == label][:2] for label in (0, 1, 2)]
    terms = []
    for anchor, positive in pairs:
        logits = [float(x[anchor] @ x[other]) for _, other in pairs]
        bottom = math.log(sum(map(math.exp, logits)))
        terms.append(bottom - float(x[anchor] @ x[positive]))
    assert npair_loss(x, y, False).item() == pytest.approx(mean(terms))


def test_the_objective_averages_over_rounds():
    x, y = drawn([0, 0, 1, 1, 2, 1, 0, 1, 0, 2, 0, 0, 1])
    first = npair_loss(x[[0, 1, 2, 3, 4, 9]], y[[0, 1, 2, 3, 4, 9]], False)
    second = npair_loss(x[[6, 8, 5, 7]], y[[6, 8, 5, 7]], False)
    # Of the third turn only class 0 has two examples.
    assert NPair().class_loss(x, y).item() == pytest.approx(float(first + second) / 2)
    one_class = torch.zeros(5, dtype=torch.long)
    assert NPair().class_loss(x[:5], one_class).item() == 0
