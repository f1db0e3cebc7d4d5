"""Classification tasks with contrastive terms: the golden sums, and what stays as it is."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases

from losses import contrastive_objectives, lower_bounds, supcon_loss
from tasks import CS224N, build_task
from tasks.base import example_embedding
from tasks.lacon import LaCon
from tasks.objectives import CL, LS, SCL, ContrastiveEPO, with_objective

pytestmark = pytest.mark.numeric


def golden_loss(objective, inputs, embeddings, **settings):
    weight = min(inputs["lambda"], 1 - 1e-9)  # all of it would leave the head untrained
    made = objective(temperature=inputs["tau"], weight=weight, **settings)
    task = with_objective(build_task("sst"), made)
    logits = torch.tensor(inputs["logits"], dtype=torch.float64)
    texts = (torch.tensor(embeddings, dtype=torch.float64),)
    return task.compute_losses(logits, texts, torch.tensor(inputs["labels"]))


@golden_cases("supcon")
def test_cross_entropy_and_supcon_golden(case):
    found = golden_loss(SCL, case["inputs"], case["inputs"]["embeddings"])
    assert found["sst"].item() == pytest.approx(case["expected"]["ce_scl"], rel=1e-6)


@golden_cases("scl_ls")
def test_linear_scalarisation_golden(case):
    inputs = case["inputs"]
    preference = inputs["preference"]
    found = golden_loss(LS, inputs, inputs["embeddings_unit"], preference=preference[0])
    above = np.dot(preference, lower_bounds(inputs["tau"], 5))  # of SST's five classes
    expected = case["expected"]["ls_loss"] - inputs["lambda"] * above
    assert found["sst"].item() == pytest.approx(expected, rel=1e-6)


@pytest.fixture
def batch():
    torch.manual_seed(0)
    return torch.randn(8, 5), torch.randn(8, 6), torch.randn(8, 6), torch.arange(8) % 2


def test_the_three_objectives_are_above_their_ideal_points(batch):
    logits, u, _, targets = batch
    task = with_objective(build_task("sst"), ContrastiveEPO())
    assert task.objectives == ("sst/cross_entropy", "sst/pull", "sst/push")
    found = task.compute_losses(logits, (u,), targets)
    pull, push = contrastive_objectives(F.normalize(u, dim=1), targets, 0.3)
    expected = (0.7 * F.cross_entropy(logits, targets), pull + 1 / 0.3, push + 1 / (4 * 0.3))
    torch.testing.assert_close(tuple(found.values()), expected)


@pytest.mark.parametrize("objective", [SCL, LS, ContrastiveEPO, CL, LaCon])
def test_losses_over_a_batch_keep_the_batch_whole(objective):
    for name in CS224N:
        plain = build_task(name)
        task = with_objective(plain, objective())
        if name == "sts":
            assert task is plain
        else:
            assert task.compares_examples
            assert len(task.objectives) == (3 if objective is ContrastiveEPO else 1)


def test_two_towers_are_one_embedding_with_their_difference(batch):
    logits, u, v, targets = batch
    task = with_objective(build_task("qqp"), SCL(0.3, 0.4))
    whole = torch.cat([u, v, (u - v).abs()], 1)
    torch.testing.assert_close(example_embedding((u, v)), whole)
    expected = 0.6 * F.cross_entropy(logits, targets) + 0.4 * supcon_loss(whole, targets, 0.3)
    torch.testing.assert_close(task.compute_losses(logits, (u, v), targets)["qqp"], expected)
