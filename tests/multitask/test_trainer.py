"""The loop: first weights, steps counted, rates, best epoch, patience, sums not finite."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain import plain_losses

from common.errors import RunError
from minbert import BiEncoder
from minbert.checksums import read_state
from multitask.combiners import Combined, Combiner
from multitask.loop.evaluation import selection_score
from multitask.loop.step import StepGradient
from multitask.loop.telemetry import read_steps, summary
from multitask.optimizer import AdamW
from multitask.runs import Run
from multitask.settings.config import RunConfig
from tasks import build_task
from tasks.metrics import overall


def summarised(trainer):
    trainer.telemetry.close()
    return summary(read_steps(trainer.telemetry.file))


class Halves(Combiner, name="halves"):
    """Half of the gradient of every objective."""

    def combine(self, gram, losses, drawn):
        return Combined(np.full(len(drawn), 0.5), "halved")


class Weighed(Halves, name="weighed"):
    """The same, also for a single objective."""

    for_one_objective = True


def test_a_users_combiner_gets_the_status_of_one_objective(make_trainer):
    trainer = make_trainer(steps_per_epoch=6, combiner=Halves())
    trainer.train_epoch(1)
    alone = sum(len(set(step)) == 1 for step in trainer.plan.steps(1))
    assert 0 < alone < 6
    statuses = summarised(trainer)["combiner_steps"]
    assert statuses == {"one objective": alone, "halved": 6 - alone}
    trainer = make_trainer("weighed", steps_per_epoch=6, combiner=Weighed())
    trainer.train_epoch(1)
    assert summarised(trainer)["combiner_steps"] == {"halved": 6}


def test_every_step_has_its_learning_rate(make_trainer, monkeypatch):
    trainer = make_trainer(steps_per_epoch=5, epochs=2, optimizer={"warmup": 0.3})
    rates = []
    step = trainer.optimizer.step
    monkeypatch.setattr(
        trainer.optimizer,
        "step",
        lambda: (rates.append(trainer.optimizer.param_groups[0]["lr"]), step())[1],
    )
    trainer.train_epoch(1)
    peak = trainer.config.optimizer.lr
    expected = [peak * AdamW(warmup=0.3).factor(i, 10) for i in range(5)]
    np.testing.assert_allclose(rates, expected)


def test_clipping_bounds_the_norm_of_the_whole_gradient(make_trainer, monkeypatch):
    trainer = make_trainer(clip=0.01)
    monkeypatch.setattr(trainer.model, "zero_grad", lambda set_to_none: None)
    trainer.train_step(np.array([0, 1, 2]))
    norms = [p.grad.norm() for p in trainer.model.parameters() if p.grad is not None]
    assert torch.stack(norms).norm() == pytest.approx(0.01, rel=1e-3)


@torch.no_grad()
def training_loss(trainer, name, rows):
    trainer.model.eval()
    losses, _ = plain_losses(trainer, name, rows)
    return float(losses[name])


def test_training_lowers_the_loss_and_keeps_the_best_epoch(make_trainer):
    trainer = make_trainer(only="sts", epochs=3, optimizer={"lr": 1e-3})
    rows = np.arange(40)
    before = training_loss(trainer, "sts", rows)
    trainer.fit()
    assert training_loss(trainer, "sts", rows) < 0.9 * before
    history = trainer.progress.history
    assert [entry["epoch"] for entry in history] == [1, 2, 3]
    best = max(history, key=lambda entry: entry["selection_score"])
    assert trainer.progress.best_epoch == best["epoch"]
    last = {k: v.clone() for k, v in trainer.model.state_dict().items()}
    folder = Run(trainer.folder).weights()
    trainer.model.load(folder)
    one, other = BiEncoder.from_pretrained(folder), trainer.model.bi_encoder
    np.testing.assert_array_equal(one.encode(["a sentence"]), other.encode(["a sentence"]))
    changed = any((last[k] != v).any() for k, v in trainer.model.state_dict().items())
    assert changed == (best["epoch"] != 3)


@pytest.mark.parametrize("keep", ["best", "last"])
def test_patience_ends_a_run_that_no_longer_improves(make_trainer, monkeypatch, keep):
    trainer = make_trainer(epochs=5, patience=2, keep=keep)
    monkeypatch.setattr("multitask.loop.trainer.selection_score", lambda metrics, tasks: 0.5)
    trainer.fit()
    assert trainer.progress.epoch == 3  # the first was best, two brought nothing


def test_only_heads_learn_while_the_encoder_is_frozen(make_trainer):
    """Nothing moves in the encoder, not even by weight decay."""
    optimizer = {"lr": 1e-2, "weight_decay": 0.5}
    settings = {"combiner": "sum", "steps_per_epoch": 9}
    trainer = make_trainer(optimizer=optimizer, freeze_encoder=True, **settings)

    def weights(module):
        return torch.cat([p.detach().flatten().clone() for p in module.parameters()])

    encoder, heads = trainer.model.bi_encoder, trainer.model.heads.values()
    before = weights(encoder), [weights(head) for head in heads]
    trainer.train_epoch(1)
    assert torch.equal(weights(encoder), before[0])
    pairs = zip(map(weights, heads), before[1], strict=True)
    assert not any(torch.equal(now, earlier) for now, earlier in pairs)


def test_a_step_in_bfloat16_sees_the_weights_of_the_step_before(make_trainer):
    trainer = make_trainer(only="sst", precision="bf16")
    batch = trainer.splits["sst"]["train"].batch(np.arange(4))
    for step in trainer.plan.steps(1)[:2]:
        trainer.model.train()
        trainer.train_step(step)
    during = trainer.model.eval().embed(batch, "sst")[0]
    assert torch.equal(during, trainer.model.embed(batch, "sst")[0])


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


def test_dropout_before_the_pooling_is_a_setting_that_only_training_has(make_trainer):
    plain, dropped = (
        make_trainer(f"{share}", dropout=False, pooling_dropout=share) for share in (0.0, 0.5)
    )
    batch = plain.splits["sst"]["train"].batch(np.arange(6))
    expected, found = (trainer.model.train().embed(batch)[0] for trainer in (plain, dropped))
    assert not torch.allclose(expected, found)
    assert torch.equal(dropped.model.eval().embed(batch)[0], plain.model.eval().embed(batch)[0])
    assert RunConfig(tasks=("sst",), preset="bees").pooling_dropout == 0.3


METRICS = {
    "sst": {"accuracy": 0.5, "macro_f1": 0.4},
    "qqp": {"accuracy": 0.8, "f1": 0.7},
    "sts": {"pearson": 0.6, "spearman": 0.5},
}
TASKS = {name: build_task(name) for name in METRICS}


def test_the_selection_score_is_the_overall_score_of_the_trained_tasks():
    assert selection_score(METRICS, TASKS) == pytest.approx((0.5 + 0.8 + 0.8) / 3)
    assert overall({"sst": METRICS["sst"]}) == {}
    assert selection_score(METRICS, {"sts": TASKS["sts"]}) == pytest.approx(0.8)
    assert selection_score(METRICS, {"sst": TASKS["sst"]}) == pytest.approx(0.5)


INF = float("inf")


@pytest.mark.parametrize("what", ["loss of sst", "gradient of (sst|qqp|sts)", "gradient of step 3"])
def test_a_step_that_is_not_finite_ends_the_run(make_trainer, monkeypatch, what):
    trainer = make_trainer(steps_per_epoch=4, epochs=1, sampling="round-robin")
    trainer.checkpoint_every = 1
    compute, kind = StepGradient.__call__, trainer.tasks["sst"].kind

    def loss(outputs, targets):
        return kind.loss(outputs, targets) * (INF if trainer.progress.step == 3 else 1.0)

    def gradient(self, batches, measure=False, step=0):
        result = compute(self, batches, measure, step)
        if step + 1 == 3:
            next(p for p in trainer.model.parameters() if p.grad is not None).grad[:] = INF
        return result

    if what == "loss of sst":
        poisoned = replace(trainer.tasks["sst"], kind=replace(kind, loss=loss))
        trainer.gradient.tasks["sst"] = poisoned
    elif what == "gradient of step 3":
        monkeypatch.setattr(StepGradient, "__call__", gradient)
    else:
        bias = trainer.model.bi_encoder.encoder.embeddings.norm.bias
        bias.register_hook(lambda found: found * (INF if trainer.progress.step == 3 else 1))
    line = f"the {what} is (inf|nan); train again with a lower --lr, --head-lr"
    with pytest.raises(RunError, match=line):
        trainer.fit()
    newest = Run(trainer.folder).checkpoint("last")
    assert read_state(newest)["progress"]["step"] == 2


def test_a_combiner_without_a_weight_for_each_objective_is_named(make_trainer, monkeypatch):
    monkeypatch.setattr("multitask.combiners.pcgrad.PCGrad.combine", lambda *given: np.ones(2))
    with pytest.raises(RunError, match="combiner pcgrad: combine must return Combined"):
        make_trainer(combiner="pcgrad").fit()
