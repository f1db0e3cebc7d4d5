"""Losses of pairs and triplets of texts: golden values, plain loops in float64, false negatives."""

import numpy as np
import pytest
import torch
from golden_files import golden_cases
from loss_cases import tensor

from losses import simcse_loss

pytestmark = pytest.mark.numeric


@golden_cases("simcse")
def test_simcse_has_the_golden_values(case):
    inputs = case["inputs"]
    loss = simcse_loss(tensor(inputs["z1"]), tensor(inputs["z2"]), temperature=inputs["tau"])
    assert loss.item() == pytest.approx(case["expected"]["loss"], rel=1e-9, abs=1e-10)


def drawn(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape, dtype=torch.float64)


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("further", "theirs"), [(0, None), (3, None), (3, [2, -1, 0])])
def test_simcse_equals_a_plain_loop(further, theirs, grouped):
    one, two = drawn(2, 6, 5)
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
