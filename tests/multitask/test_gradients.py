"""The row buffer: Gram matrix and combined gradient against plain matrices."""

import numpy as np
import torch
from torch import nn

from multitask.gradients import GradientRows


def parameters():
    torch.manual_seed(0)
    return [nn.Parameter(torch.randn(3, 4)), nn.Parameter(torch.randn(5))]


def fill(rows, shared, gradients):
    for flat in gradients:
        shared[0].grad, shared[1].grad = flat[:12].view(3, 4).clone(), flat[12:].clone()
        rows.collect()


def test_gram_and_combined_gradient_equal_plain_matrix_products():
    shared = parameters()
    rows = GradientRows(shared)
    for m in (3, 2):  # the buffer is used again for fewer objectives
        gradients = torch.randn(m, 17)
        fill(rows, shared, gradients)
        np.testing.assert_allclose(rows.gram(), gradients @ gradients.T, rtol=1e-5, atol=1e-5)
        weights = np.arange(1.0, m + 1)
        rows.write_back(weights)
        found = torch.cat([p.grad.flatten() for p in shared])
        torch.testing.assert_close(found, torch.tensor(weights, dtype=torch.float32) @ gradients)


def test_a_parameter_without_gradient_counts_as_zero():
    shared = parameters()
    rows = GradientRows(shared)
    fill(rows, shared, torch.ones(1, 17))
    shared[1].grad = torch.ones(5)
    rows.collect()
    np.testing.assert_array_equal(rows.gram(), [[17, 5], [5, 5]])


def test_collecting_leaves_no_gradient_behind():
    shared = parameters()
    rows = GradientRows(shared)
    fill(rows, shared, torch.ones(1, 17))
    assert all(p.grad is None for p in shared)


def test_frozen_parameters_take_no_part():
    shared = parameters()
    shared[0].requires_grad_(False)
    rows = GradientRows(shared)
    shared[1].grad = torch.ones(5)
    rows.collect()
    np.testing.assert_array_equal(rows.gram(), [[5]])
