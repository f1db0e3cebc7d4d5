"""Divergences: golden values, extreme logits, different shapes."""

import pytest
import torch
from golden_files import golden_cases
from loss_cases import tensor

from losses import squared_difference, symmetric_kl

pytestmark = pytest.mark.numeric


@golden_cases("smart_divergence")
def test_values_and_gradients_are_the_golden_ones(case):
    p, q = (tensor(case["inputs"][key]).requires_grad_() for key in ("logits_p", "logits_q"))
    expected = case["expected"]
    loss = symmetric_kl(p, q)
    assert loss.item() == pytest.approx(expected["sym_kl_batchmean"], rel=1e-9, abs=1e-10)
    loss.backward()
    for side, key in ((p, "grad_p_batchmean_full"), (q, "grad_q_batchmean_full")):
        torch.testing.assert_close(side.grad, tensor(expected[key]), rtol=1e-9, atol=1e-10)
    difference = squared_difference(p, q).item()
    assert difference == pytest.approx(expected["mse_mean"], rel=1e-9, abs=1e-10)


def test_equal_logits_give_exactly_zero_and_far_ones_stay_finite():
    logits = torch.randn(7, 5) * 30
    assert symmetric_kl(logits, logits.clone()).item() == 0
    p = torch.tensor([[200.0, -200.0]], requires_grad=True)
    loss = symmetric_kl(p, -p.detach())
    loss.backward()
    assert loss.item() == pytest.approx(800)
    assert p.grad.isfinite().all()
