"""Triplet and N-pair loss: golden values, plain loops over triplets, batches without any."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from losses import every_npair_loss, npair_loss, triplet_loss

pytestmark = pytest.mark.numeric

GOLDEN = Path(__file__).parents[1] / "golden"
BATCHES = {
    "balanced": [0, 1, 2] * 3,
    "unbalanced": [0, 0, 0, 0, 1, 1, 2],
    "one class": [1, 1, 1],
    "all alone": [0, 1, 2],
    "one example": [0],
}


def cases(topic):
    return json.loads((GOLDEN / f"{topic}.json").read_text())["cases"]


def tensors(inputs):
    return torch.tensor(inputs["embeddings"], dtype=torch.float64), torch.tensor(inputs["labels"])


@pytest.mark.parametrize("case", cases("triplet"), ids=lambda case: case["id"])
@pytest.mark.parametrize("reduction", ["active", "all"])
def test_triplet_golden(case, reduction):
    inputs = case["inputs"]
    found = triplet_loss(
        *tensors(inputs),
        inputs["margin"],
        inputs["distance_power"],
        inputs["normalise"],
        reduction,
    )
    assert found.item() == pytest.approx(case["expected"][f"mean_{reduction}"], rel=1e-9)


@pytest.mark.parametrize("case", cases("npair"), ids=lambda case: case["id"])
def test_npair_golden(case):
    found = npair_loss(*tensors(case["inputs"]), case["inputs"]["normalise"])
    assert found.item() == pytest.approx(case["expected"]["loss"], rel=1e-9, abs=1e-12)


def batch(labels, seed=0):
    torch.manual_seed(seed)
    return torch.randn(len(labels), 5, dtype=torch.float64), torch.tensor(labels)


@pytest.mark.parametrize("labels", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("margin", [0.05, 0.5])
def test_triplets_by_loops(labels, power, margin):
    x, y = batch(labels)
    unit = F.normalize(x, dim=1)
    terms = [
        float((unit[a] - unit[p]).norm() ** power - (unit[a] - unit[n]).norm() ** power + margin)
        for a, p, n in itertools.product(range(len(x)), repeat=3)
        if a != p and y[a] == y[p] and y[a] != y[n]
    ]
    active = [term for term in terms if term > 0]
    expected = {"active": sum(active) / len(active) if active else 0.0}
    expected["all"] = sum(active) / len(terms) if terms else 0.0
    for reduction, value in expected.items():
        found = triplet_loss(x, y, margin, power, reduction=reduction)
        assert found.item() == pytest.approx(value, rel=1e-9)


def test_the_gradient_is_that_of_the_written_out_triplets():
    x, y = batch([0, 1, 2] * 3)
    x.requires_grad_()
    (found,) = torch.autograd.grad(triplet_loss(x, y, 0.3, reduction="all"), x)
    unit = F.normalize(x, dim=1)
    apart = (unit[:, None] - unit).norm(dim=2)
    terms = [
        (apart[a, p] - apart[a, n] + 0.3).clamp(min=0)
        for a, p, n in itertools.product(range(9), repeat=3)
        if a != p and y[a] == y[p] and y[a] != y[n]
    ]
    (expected,) = torch.autograd.grad(torch.stack(terms).mean(), x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("labels", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("alike", [False, True])
def test_gradients_are_finite(labels, alike):
    x, y = batch(labels)
    x = (x[:1].expand_as(x) if alike else x).float().clone().requires_grad_()
    for loss in (triplet_loss(x, y, 0.2), npair_loss(x, y, True), npair_loss(x, y, False)):
        (gradient,) = torch.autograd.grad(loss, x)
        assert torch.isfinite(gradient).all()


def test_npairs_by_loops():
    x, y = batch([2, 0, 1, 0, 2, 1, 1, 3])
    pairs = [[i for i in range(len(y)) if y[i] == label][:2] for label in (0, 1, 2)]
    terms = []
    for anchor, positive in pairs:
        logits = [float(x[anchor] @ x[other]) for _, other in pairs]
        bottom = math.log(sum(map(math.exp, logits)))
        terms.append(bottom - float(x[anchor] @ x[positive]))
    assert npair_loss(x, y, False).item() == pytest.approx(sum(terms) / 3)


def test_every_npair_is_the_mean_over_the_turns_of_the_classes():
    x, y = batch([0, 0, 1, 1, 2, 1, 0, 1, 0, 2, 0, 0, 1])
    first = npair_loss(x[[0, 1, 2, 3, 4, 9]], y[[0, 1, 2, 3, 4, 9]], True)
    second = npair_loss(x[[6, 8, 5, 7]], y[[6, 8, 5, 7]], True)
    # Of the third turn only class 0 has two examples.
    assert every_npair_loss(x, y, True).item() == pytest.approx(float(first + second) / 2)
    alone = torch.zeros(5, dtype=torch.long)
    assert every_npair_loss(x[:5], alone, True).item() == 0
