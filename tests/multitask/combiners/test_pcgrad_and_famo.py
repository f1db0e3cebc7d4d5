"""PCGrad: golden vectors, projection in D dimensions. FAMO: the authors' update in PyTorch."""

import numpy as np
import pytest
import torch
from golden_files import golden, golden_cases
from plain import project_explicitly

from multitask.combiners import pcgrad_weights
from multitask.combiners.loss_weights import DECAY, FAMO, FAMO_RATE
from multitask.combiners.pcgrad import PCGrad, random_order

pytestmark = pytest.mark.numeric

GOLDEN = golden("pcgrad")


@golden_cases("pcgrad")
def test_pcgrad_equals_the_golden_vectors(case):
    gradients = np.array(case["inputs"]["task_gradients"], np.float64)
    order = [[j for j in row if j != i] for i, row in enumerate(case["inputs"]["projection_order"])]
    loose = {"nearly_parallel", "opposite"} & set(case["tags"])
    scale = max(1.0, np.abs(gradients).max())
    np.testing.assert_allclose(
        pcgrad_weights(torch.from_numpy(gradients @ gradients.T), order) @ gradients,
        case["expected"]["sum"],
        rtol=1e-6 if loose else GOLDEN["tolerance"]["rtol"],
        atol=(1e-9 if loose else GOLDEN["tolerance"]["atol"]) * scale,
    )


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_pcgrad_on_the_gram_matrix_equals_projection_of_the_gradients(m, scale):
    generator = np.random.default_rng(m)
    for _ in range(40):
        gradients = generator.normal(size=(m, 7)) * scale * 10 ** generator.uniform(-2, 2, (m, 1))
        order = random_order(generator, m)
        expected = project_explicitly(gradients, order).sum(0)
        found = pcgrad_weights(gradients @ gradients.T, order) @ gradients
        assert np.linalg.norm(found - expected) <= 1e-9 * np.linalg.norm(expected) + 1e-300


@pytest.mark.parametrize("order", [[[1]], [[0], [0]], [[1], []], [[1, 1], [0]]])
def test_pcgrad_refuses_an_order_that_does_not_name_each_other_task_once(order):
    with pytest.raises(ValueError, match="order"):
        pcgrad_weights(np.eye(2), order)


def test_pcgrad_changes_nothing_without_a_conflict_and_reports_one():
    generator = np.random.default_rng(2)
    for m in (1, 2, 4):
        gradients = generator.uniform(size=(m, 6))  # no negative inner product
        combiner = PCGrad().for_run(m)
        combined = combiner.combine(gradients @ gradients.T, np.ones(m), range(m))
        np.testing.assert_array_equal(combined.weights, np.ones(m))
        assert combined.status == "no conflict"
        if m == 2:
            conflict = np.array([[1.0, -0.5], [-0.5, 1.0]])
            assert combiner.combine(conflict, np.ones(2), (0, 1)).status == "projected"


def test_pcgrad_draws_fresh_orders():
    gradients = np.array([[1.0, 0.2], [-1.0, 0.3], [0.1, -1.0]])
    gram = gradients @ gradients.T
    combiner = PCGrad().for_run(3)
    found = {tuple(combiner.combine(gram, np.ones(3), range(3)).weights) for _ in range(20)}
    assert len(found) > 1


def build(m):
    return FAMO().for_run(m)


def test_weights_and_logits_are_those_of_autograd_and_pytorchs_adam():
    """With all objectives in every step, as in the authors' code."""
    combiner, random = build(3), np.random.default_rng(0)
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([logits], lr=FAMO_RATE, weight_decay=DECAY)
    for _ in range(30):
        before, after = random.uniform(0.01, 5, (2, 3))
        losses = torch.from_numpy(before).requires_grad_()
        shares = torch.softmax(logits, 0).detach()
        scale = (shares / losses).sum().detach()
        (losses.log() @ shares / scale).backward()
        found = combiner.combine(np.zeros((3, 3)), before, range(3)).weights
        np.testing.assert_allclose(found / 3, losses.grad, rtol=1e-9)  # here with the sum m
        adam.zero_grad()
        progress = losses.detach().log() - torch.from_numpy(after).log()
        (torch.softmax(logits, 0) @ progress).backward()
        adam.step()
        combiner.after_step(before, after, range(3))
        np.testing.assert_allclose(combiner.state["logits"], logits.detach(), rtol=0, atol=1e-9)


def test_only_drawn_objectives_change():
    whole, part = build(4), build(2)
    random = np.random.default_rng(1)
    for _ in range(5):
        before, after = random.uniform(1, 2, (2, 2))
        whole.after_step(before, after, [1, 3])
        part.after_step(before, after, [0, 1])
        whole.after_step(before[:1], after[:1], [0])  # alone: nothing to compare it with
    np.testing.assert_array_equal(
        whole.state["logits"], [0, part.state["logits"][0], 0, part.state["logits"][1]]
    )
    np.testing.assert_array_equal(
        whole.combine(None, before, [1, 3]).weights, part.combine(None, before, [0, 1]).weights
    )
    assert whole.combine(None, before[:1], [2]).weights.tolist() == [1.0]


def test_losses_of_zero_are_possible():
    combiner = build(2)
    assert np.isfinite(combiner.combine(None, np.array([0.0, 1.0]), range(2)).weights).all()
    combiner.after_step(np.array([0.0, 1.0]), np.array([0.0, 0.0]), range(2))
    assert np.isfinite(combiner.state["logits"]).all()
