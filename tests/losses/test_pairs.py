"""Pair losses against plain loops, in float64."""

import numpy as np
import pytest
import torch

from losses import pair_contrastive_loss

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("margin", [0.5, 1.2])
def test_contrastive_loss_equals_a_plain_loop(margin):
    torch.manual_seed(0)
    u, v = torch.randn(2, 20, 5, dtype=torch.float64)
    alike = torch.arange(20) % 3 == 0
    total = 0.0
    for a, b, same in zip(u.numpy(), v.numpy(), alike.tolist(), strict=True):
        distance = 1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        total += 0.5 * (distance**2 if same else max(0.0, margin - distance) ** 2)
    found = pair_contrastive_loss(u, v, alike.long(), margin)
    assert found.item() == pytest.approx(total / 20)


def test_it_pulls_what_is_alike_and_pushes_what_is_not_up_to_the_margin():
    u, v = torch.eye(3)[:2], torch.tensor([[1.0, 1.0, 0.0], [0.1, 1.0, 0.0]])
    for alike, nearer in ((1, True), (0, False)):
        moved = v.clone().requires_grad_()
        pair_contrastive_loss(u, moved, torch.full((2,), alike)).backward()
        step = torch.cosine_similarity(u, v - 0.1 * moved.grad)
        assert ((step > torch.cosine_similarity(u, v)) == nearer).all()
    far = pair_contrastive_loss(torch.eye(2), -torch.eye(2), torch.zeros(2))
    assert far.item() == 0
