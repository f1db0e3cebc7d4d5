"""Parameter groups, and the learning rate's way up and down."""

import numpy as np
import pytest

from multitask.optimizer import AdamW


def test_encoder_and_heads_have_their_own_rates_and_vectors_do_not_decay(make_trainer):
    trainer = make_trainer(optimizer=AdamW(lr=1e-4, head_lr=1e-2, weight_decay=0.3))
    groups = trainer.optimizer.param_groups
    assert [(g["lr"], g["weight_decay"]) for g in groups] == [
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
    assert trainer.peak_rates == [1e-4, 1e-4, 1e-2, 1e-2]


def test_copies_of_layers_have_the_rate_of_the_encoder(make_trainer):
    trainer = make_trainer(branch="top-2", optimizer=AdamW(lr=1e-3, head_lr=1e-2))
    found = {id(p): g["lr"] for g in trainer.optimizer.param_groups for p in g["params"]}
    assert {found[id(p)] for p in trainer.model.branches["sts"].parameters()} == {1e-3}


@pytest.mark.parametrize(("schedule", "last"), [("linear", 0), ("constant", 1)])
def test_the_rate_increases_during_warm_up_and_then_falls_or_stays(schedule, last):
    optimizer = AdamW(warmup=0.1, lr_schedule=schedule)
    factors = [optimizer.factor(step, 100) for step in range(101)]
    np.testing.assert_allclose(factors[:10], np.arange(1, 11) / 10)
    np.testing.assert_allclose(factors[10:], np.linspace(1, last, 91))


@pytest.mark.parametrize("schedule", ["linear", "constant"])
@pytest.mark.parametrize("total", [1, 2, 3])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_even_the_shortest_run_takes_a_step(schedule, total, warmup):
    optimizer = AdamW(warmup=warmup, lr_schedule=schedule)
    assert all(0 < optimizer.factor(step, total) <= 1 for step in range(total))
