"""FAMO: the authors' update in PyTorch, drawn objectives, and the step that it needs."""

import numpy as np
import torch

from multitask.combiners.famo import DECAY, FAMO, RATE


def build(m):
    return FAMO().for_run(m)


def test_weights_and_logits_are_those_of_autograd_and_pytorchs_adam():
    """With all objectives in every step, as in the authors' code."""
    combiner, random = build(3), np.random.default_rng(0)
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([logits], lr=RATE, weight_decay=DECAY)
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
