"""Dropout: its rate, its scale, and its gradient."""

import pytest
import torch

from minbert.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.001, 0.999])
def test_rate_and_mean_are_those_of_the_rounded_probability(p):
    torch.manual_seed(3)
    layer = Dropout(p)
    x = torch.ones(1000, 997, requires_grad=True)
    y = layer(x)
    rate = min(255, max(1, round(256 * p))) / 256
    assert abs(rate - p) <= 1 / 256
    n = x.numel()
    assert abs((y == 0).double().mean().item() - rate) < 5 * (rate * (1 - rate) / n) ** 0.5
    kept = y[y != 0]
    assert kept.unique().numel() == 1
    assert kept[0].item() == pytest.approx(1 / (1 - rate), rel=1e-6)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert layer.eval()(x) is x
    assert Dropout(0.0)(x) is x
