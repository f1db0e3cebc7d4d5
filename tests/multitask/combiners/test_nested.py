"""Pull, push and cross-entropy of a task: golden values, and two levels as one mixture."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases

from losses import contrastive_objectives
from multitask.combiners import Combined
from multitask.combiners.nested import combine_tasks, pull_push_weights
from tasks.objectives import ContrastiveEPO

pytestmark = pytest.mark.numeric

THREE = ("a/cross_entropy", "a/pull", "a/push")


def balanced(weight, preference, inputs="contrastive"):
    return ContrastiveEPO(weight=weight, preference=preference, inputs=inputs)


@golden_cases("epo_contrastive")
def test_the_update_is_the_golden_one(case):
    """From the model of the vectors: Z = X W^T, logits = Z V^T."""
    inputs, expected = case["inputs"], case["expected"]
    x, w, v = (torch.tensor(inputs[key], dtype=torch.float64) for key in ("X", "W", "V"))
    labels = torch.tensor(inputs["labels"])
    w.requires_grad_()
    v.requires_grad_()
    z = x @ w.T
    pull, push = contrastive_objectives(F.normalize(z, dim=1), labels, inputs["tau"])
    share = inputs["lambda"]
    losses = [
        (1 - share) * F.cross_entropy(z @ v.T, labels),
        pull + inputs["shift_pos"],
        push + inputs["shift_neg"],
    ]
    rows = []
    for loss in losses:
        parts = torch.autograd.grad(loss, (w, v), retain_graph=True, allow_unused=True)
        parts = [
            torch.zeros_like(p) if g is None else g for g, p in zip(parts, (w, v), strict=True)
        ]
        rows.append(torch.cat([part.flatten() for part in parts]))
    gradients = torch.stack(rows).numpy()
    balance = balanced(inputs["lambda"], inputs["preference"][0], inputs["epo_inputs"])
    values = np.array([loss.item() for loss in losses])
    found = pull_push_weights(balance, gradients @ gradients.T, values)
    np.testing.assert_allclose(found.weights[1:] / share, expected["alpha"], atol=1e-6)
    assert found.weights[0] == 1
    assert ("vertex" in found.status) == (max(expected["alpha"]) > 1 - 1e-6)
    update = [np.ravel(expected[f"update_gradient_{name}"]) for name in "WV"]
    np.testing.assert_allclose(found.weights @ gradients, np.concatenate(update), atol=1e-6)


@pytest.mark.parametrize("inputs", ["contrastive", "combined"])
@pytest.mark.parametrize("missing", [1, 2])
def test_a_batch_without_pull_or_push_uses_the_preference(inputs, missing):
    gram = np.diag([1.0, 2.0, 3.0])
    gram[missing, missing] = 0
    found = pull_push_weights(balanced(0.3, 0.1, inputs), gram, np.ones(3))
    assert found.status == "pull or push undefined"
    np.testing.assert_allclose(found.weights, [1, 0.03, 0.27])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("inputs", ["contrastive", "combined"])
def test_the_contrastive_share_stays_and_losses_below_zero_are_no_error(seed, inputs):
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(3, 5))
    losses = draw.uniform(-0.1, 2, size=3)
    found = pull_push_weights(balanced(0.4, 0.3, inputs), rows @ rows.T, losses)
    assert found.weights[1:].sum() == pytest.approx(0.4)
    assert found.weights[0] == 1
    assert (found.weights >= 0).all()
    below = (losses if inputs == "contrastive" else losses[0] + 0.4 * losses)[1:].min() < 0
    assert ("below an ideal point" in found.status) == below


class Fixed:
    """Answers the same weights, and keeps what it was asked."""

    def __init__(self, *weights):
        self.weights = np.array(weights)

    def combine(self, gram, losses, drawn):
        self.asked = gram, losses, list(drawn)
        return Combined(self.weights, "fixed")


def test_tasks_are_combined_as_mixtures_of_their_objectives():
    draw = np.random.default_rng(0)
    names = (*THREE, "sts", *(name.replace("a/", "b/") for name in THREE))
    rows, losses = draw.normal(size=(7, 9)), draw.uniform(0.1, 2, size=7)
    balance, tasks = balanced(0.3, 0.5, "contrastive"), Fixed(2.0, 0.5, 3.0)
    found = combine_tasks(tasks, balance, rows @ rows.T, losses, names, ["a", "sts", "b"])
    mixtures = np.zeros((3, 7))
    for row, begin in ((0, 0), (2, 4)):
        mine = slice(begin, begin + 3)
        mixtures[row, mine] = pull_push_weights(
            balance, rows[mine] @ rows[mine].T, losses[mine]
        ).weights
    mixtures[1, 3] = 1
    gram, seen, drawn = tasks.asked
    np.testing.assert_allclose(gram, (mixtures @ rows) @ (mixtures @ rows).T)
    np.testing.assert_allclose(seen, mixtures @ losses)
    assert drawn == [0, 1, 2]
    np.testing.assert_allclose(found.weights, [2.0, 0.5, 3.0] @ mixtures)
    assert found.status.endswith("; fixed")
    others = tuple(name.replace("push", "spread") for name in THREE)  # are added up
    found = combine_tasks(Fixed(2.0), balance, np.eye(3), np.ones(3), others, ["a"])
    np.testing.assert_allclose(found.weights, [2.0, 2.0, 2.0])
