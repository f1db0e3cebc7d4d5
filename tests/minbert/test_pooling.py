"""Poolings equal a naive loop, gradients included."""

import pytest
import torch

from minbert.batching import Batch
from minbert.pooling import POOLINGS

pytestmark = pytest.mark.numeric

LENGTHS = [3, 1, 7, 2]
NAIVE = {
    "mean": lambda states: states.sum(0) / len(states),
    "cls": lambda states: states[0],
    "max": lambda states: states.max(0).values,
}


@pytest.fixture
def batch():
    return Batch(lengths=torch.tensor(LENGTHS), ids=torch.zeros(sum(LENGTHS), dtype=torch.long))


@pytest.fixture
def hidden():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(sum(LENGTHS), 5, dtype=torch.float64, generator=generator)
    return (states - 10).requires_grad_()  # all negative: a zero from padding would win a maximum


@pytest.mark.parametrize("name", NAIVE)
def test_value_and_gradient_equal_a_naive_loop(name, hidden, batch):
    assert NAIVE.keys() == POOLINGS.keys()
    expected = torch.stack([NAIVE[name](states) for states in hidden.split(LENGTHS)])
    found = POOLINGS[name](hidden, batch)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    weights = torch.arange(found.numel(), dtype=torch.float64).view_as(found)
    (ours,) = torch.autograd.grad((found * weights).sum(), hidden)
    (naive,) = torch.autograd.grad((expected * weights).sum(), hidden)
    torch.testing.assert_close(ours, naive, atol=1e-12, rtol=0)
