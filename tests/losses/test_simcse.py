"""SimCSE and the triplet loss: golden values, plain loops in float64, false negatives."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from losses import simcse_loss, triplet_margin_loss

pytestmark = pytest.mark.numeric

GOLDEN = Path(__file__).parents[1] / "golden" / "simcse.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_values(case):
    inputs = case["inputs"]
    views = (torch.tensor(inputs[key], dtype=torch.float64) for key in ("z1", "z2"))
    loss = simcse_loss(*views, temperature=inputs["tau"]).item()
    assert loss == pytest.approx(case["expected"]["loss"], rel=1e-9, abs=1e-10)


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("further", "theirs"), [(0, None), (3, None), (3, [2, -1, 0])])
def test_it_equals_a_plain_loop(further, theirs, grouped):
    torch.manual_seed(0)
    one, two = torch.randn(2, 6, 5, dtype=torch.float64)
    negatives = torch.randn(further, 5, dtype=torch.float64) if further else None
    groups = torch.tensor([0, 1, 0, 2, 1, 0]) if grouped else None
    total = 0.0
    for i in range(6):
        kept = [j for j in range(6) if j == i or not grouped or groups[i] != groups[j]]
        candidates = [two[j] for j in kept]
        for k in range(further):
            if not (grouped and theirs) or theirs[k] != groups[i]:
                candidates.append(negatives[k])
        scores = np.exp([cosine(one[i].numpy(), c.numpy()) / 0.1 for c in candidates])
        total -= np.log(scores[kept.index(i)] / scores.sum())
    negative_groups = torch.tensor(theirs) if theirs and grouped else None
    found = simcse_loss(one, two, 0.1, negatives, groups, negative_groups)
    assert found.item() == pytest.approx(total / 6)


def test_a_sentence_that_is_twice_in_the_batch_is_not_pushed_from_itself():
    one = torch.eye(4)[[0, 0, 1, 2]]
    assert simcse_loss(one, one).item() > 0.3  # log 2 for the first two, on average a half of it
    assert simcse_loss(one, one, groups=torch.tensor([7, 7, 1, 2])).item() < 1e-6


def test_gradients_are_finite_where_all_are_of_one_group():
    one = torch.randn(3, 4, requires_grad=True)
    loss = simcse_loss(one, torch.randn(3, 4), groups=torch.zeros(3))
    loss.backward()
    assert loss.item() == 0
    assert one.grad.isfinite().all()


@pytest.mark.parametrize("margin", [0.2, 1.0])
def test_triplets_equal_a_plain_loop(margin):
    torch.manual_seed(0)
    texts = torch.randn(3, 9, 5, dtype=torch.float64)
    plain = [
        max(0.0, cosine(a, n) - cosine(a, p) + margin)
        for a, p, n in zip(*texts.numpy(), strict=True)
    ]
    assert triplet_margin_loss(*texts, margin=margin).item() == pytest.approx(np.mean(plain))
