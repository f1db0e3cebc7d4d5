"""The model of a configuration: heads by seed and name, poolings of their own, what selects."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain import step_terms
from tolerances import assert_near

from common.errors import SettingsError
from multitask.config_tasks import build_tasks
from multitask.loop.batches import next_batches
from multitask.loop.evaluation import selection_score
from multitask.settings.config import RunConfig

CONFIG = RunConfig(mode="single", tasks=("sst",), encoder="tiny", limit=12)


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


def test_another_metric_may_select_the_epoch():
    (plain,) = build_tasks(CONFIG).values()
    (other,) = build_tasks(replace(CONFIG, select_by="macro_f1")).values()
    assert (plain.kind.main_metric, other.kind.main_metric) == ("accuracy", "macro_f1")
    both = build_tasks(
        replace(CONFIG, mode="multitask", tasks=("cola", "sts"), select_by="matthews")
    )
    assert [task.kind.main_metric for task in both.values()] == ["matthews", "pearson"]
    scores = {"cola": {"matthews": 0.0}, "sts": {"pearson": 0.5}}
    assert selection_score(scores, both) == (0.5 + 0.75) / 2  # both from -1 to 1
    rare = build_tasks(
        replace(CONFIG, mode="multitask", tasks=("qqp", "etpc", "sts"), select_by="macro_f1")
    )
    assert [task.kind.main_metric for task in rare.values()] == ["macro_f1", "macro_f1", "pearson"]
    found = rare["qqp"].kind.measure(np.eye(2)[[0, 0, 1]], np.array([0, 1, 1]))
    assert list(found) == ["accuracy", "f1", "macro_f1"]
    assert found["macro_f1"] == pytest.approx(2 / 3)
    with pytest.raises(SettingsError, match="expected a metric of the tasks: sst has accuracy"):
        build_tasks(replace(CONFIG, select_by="pearson"))
