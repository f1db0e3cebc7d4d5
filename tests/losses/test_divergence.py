"""Divergences: golden values, and that nothing is stretched."""

import json
from pathlib import Path

import pytest
import torch

from losses import squared_difference, symmetric_kl

pytestmark = pytest.mark.numeric

GOLDEN = Path(__file__).parents[1] / "golden" / "smart_divergence.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_values_and_gradients(case):
    p, q = (
        torch.tensor(case["inputs"][key], dtype=torch.float64, requires_grad=True)
        for key in ("logits_p", "logits_q")
    )
    expected = case["expected"]
    loss = symmetric_kl(p, q)
    assert loss.item() == pytest.approx(expected["sym_kl_batchmean"], rel=1e-9, abs=1e-10)
    loss.backward()
    for side, key in ((p, "grad_p_batchmean_full"), (q, "grad_q_batchmean_full")):
        wanted = torch.tensor(expected[key], dtype=torch.float64)
        torch.testing.assert_close(side.grad, wanted, rtol=1e-9, atol=1e-10)
    difference = squared_difference(p, q).item()
    assert difference == pytest.approx(expected["mse_mean"], rel=1e-9, abs=1e-10)


def test_outputs_that_agree_give_exactly_zero():
    logits = torch.randn(7, 5) * 30
    assert symmetric_kl(logits, logits.clone()).item() == 0


def test_far_logits_stay_finite():
    p = torch.tensor([[200.0, -200.0]], requires_grad=True)
    loss = symmetric_kl(p, -p.detach())
    loss.backward()
    assert loss.item() == pytest.approx(800)
    assert p.grad.isfinite().all()


def test_a_column_beside_a_row_is_refused():
    with pytest.raises(ValueError, match="expected two of the same shape, found"):
        squared_difference(torch.zeros(4), torch.zeros(4, 1))
