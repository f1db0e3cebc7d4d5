"""The model of a configuration: heads by seed and name, poolings of their own, what selects."""

import numpy as np
import pytest
import torch
from plain import step_terms
from tolerances import assert_near

from multitask.loop.batches import next_batches
from multitask.settings.config import RunConfig


def heads(make_trainer, **changes):
    model = make_trainer(**changes).model
    return {name: value.clone() for name, value in model.heads.state_dict().items()}


def test_initial_heads_depend_on_seed_and_name(make_trainer):
    one, again, other = (heads(make_trainer, seed=seed) for seed in (1, 1, 2))
    single = heads(make_trainer, tasks=("sts",), seed=1, combiner="sum")
    for name, value in one.items():
        assert torch.equal(value, again[name])
        if name.endswith("weight") and not name.startswith("sts.hidden"):  # the identity
            assert not torch.equal(value, other[name])
    assert all(torch.equal(value, one[name]) for name, value in single.items())


@pytest.mark.numeric
@pytest.mark.parametrize("objective", ["lacon-fusion", "leam", "lsan"])
def test_heads_that_pool_tokens_have_the_same_gradient_with_micro_batches(make_trainer, objective):
    found = []
    for size in (None, 3):
        changes = {"objective": objective, "batch_size": 8, "micro_batch": size}
        trainer = make_trainer(only="sst", dropout=False, **changes)
        trainer.gradient(next_batches(trainer.streams, trainer.plan.steps(1)[0]))
        found.append({n: p.grad.to_dense() for n, p in trainer.model.named_parameters()})
    largest = max(float(gradient.abs().max()) for gradient in found[0].values())
    for name, gradient in found[0].items():
        assert_near(gradient, found[1][name], step_terms(trainer), largest)
        if "attention" in name or "labels" in name:
            assert gradient.abs().max() > 0


def test_dropout_before_the_pooling_is_a_setting_that_only_training_has(make_trainer):
    plain, dropped = (
        make_trainer(f"{share}", dropout=False, pooling_dropout=share) for share in (0.0, 0.5)
    )
    batch = plain.splits["sst"]["train"].batch(np.arange(6))
    expected, found = (trainer.model.train().embed(batch)[0] for trainer in (plain, dropped))
    assert not torch.allclose(expected, found)
    assert torch.equal(dropped.model.eval().embed(batch)[0], plain.model.eval().embed(batch)[0])
    assert RunConfig(tasks=("sst",), preset="bees").pooling_dropout == 0.3
