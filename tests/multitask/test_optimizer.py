"""Parameter groups, and the learning rate's way up and down."""

import numpy as np
import pytest
import torch
from plain import golden

from multitask.methods import methods
from multitask.optimizer import Constant, Linear, set_learning_rate


def test_encoder_and_heads_have_their_own_rates_and_vectors_do_not_decay(make_trainer):
    trainer = make_trainer(lr=1e-4, head_lr=1e-2, weight_decay=0.3)
    groups = trainer.optimizer.param_groups
    assert [(g["peak_lr"], g["weight_decay"]) for g in groups] == [
        (1e-4, 0.3),
        (1e-4, 0.0),
        (1e-2, 0.3),
        (1e-2, 0.0),
    ]
    for group in groups:
        assert all((p.ndim > 1) == (group["weight_decay"] > 0) for p in group["params"])
        assert group["fused"]
    held = sum(p.numel() for g in groups for p in g["params"])
    assert held == sum(p.numel() for p in trainer.model.parameters())
    set_learning_rate(trainer.optimizer, 0.5)
    assert [g["lr"] for g in trainer.optimizer.param_groups] == [5e-5, 5e-5, 5e-3, 5e-3]


@pytest.mark.parametrize(("schedule", "last"), [(Linear, 0), (Constant, 1)])
def test_the_rate_increases_during_warm_up_and_then_falls_or_stays(schedule, last):
    factors = [schedule(warmup=0.1).factor(step, 100) for step in range(101)]
    np.testing.assert_allclose(factors[:10], np.arange(1, 11) / 10)
    np.testing.assert_allclose(factors[10:], np.linspace(1, last, 91))


@pytest.mark.parametrize("schedule", methods("lr_schedule").values())
@pytest.mark.parametrize("total", [1, 2, 3])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_even_the_shortest_run_takes_a_step(schedule, total, warmup):
    assert all(0 < schedule(warmup=warmup).factor(step, total) <= 1 for step in range(total))


@pytest.mark.parametrize(
    "case",
    [c for c in golden("adamw")["cases"] if c["inputs"]["correct_bias"]],
    ids=lambda case: case["id"],
)
def test_pytorchs_adamw_is_the_starter_codes_but_decays_before_the_step(case):
    given = case["inputs"]
    parameter = torch.nn.Parameter(torch.tensor(given["param"], dtype=torch.float64))
    names = ("lr", "betas", "eps", "weight_decay")
    optimizer = torch.optim.AdamW([parameter], fused=True, **{name: given[name] for name in names})
    for gradient in given["gradients"]:
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
        optimizer.step()
    expected = case["expected"]["trap_decay_before_update_final"]
    # Its eps is added to the corrected root, the starter code's to the uncorrected one.
    np.testing.assert_allclose(parameter.detach(), expected, rtol=1e-3)
    after = case["expected"]["params_after_each_step"][-1]
    differs = given["weight_decay"] > 0 and np.any(given["gradients"])
    assert np.allclose(parameter.detach(), after, rtol=1e-3) != differs
