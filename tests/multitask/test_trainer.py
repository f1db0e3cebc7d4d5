"""The loop: steps counted, rates set, best epoch, resuming, patience."""

import numpy as np
import pytest
import torch
from plain import plain_losses

from multitask.atomic_dirs import CheckpointError, newest_first, seal
from multitask.optimizer import Linear
from multitask.run_folder import RunFolder


def test_what_the_combiner_says_and_which_gradients_conflict_is_counted(make_trainer):
    trainer = make_trainer(steps_per_epoch=6)
    trainer.train_epoch(1)
    progress = trainer.progress
    assert set(progress.statuses) <= {"projected", "no conflict", "one objective"}
    assert sum(progress.statuses.values()) == progress.step == 6
    several = sum(len(set(step)) > 1 for step in trainer.plan.steps(1))
    assert progress.statuses.get("one objective", 0) == 6 - several
    pairs = [{min(p), max(p)} for p in ((0, 1), (0, 2), (1, 2))]
    met = sum(pair <= set(step.tolist()) for step in trainer.plan.steps(1) for pair in pairs)
    assert sum(steps for steps, _, _ in progress.conflicts.values()) == met


def test_every_step_has_its_learning_rate(make_trainer, monkeypatch):
    trainer = make_trainer(steps_per_epoch=5, epochs=2, warmup=0.3)
    rates = []
    step = trainer.optimizer.step
    monkeypatch.setattr(
        trainer.optimizer,
        "step",
        lambda: (rates.append(trainer.optimizer.param_groups[0]["lr"]), step())[1],
    )
    trainer.train_epoch(1)
    peak = trainer.config.optimizer.lr
    expected = [peak * Linear(warmup=0.3).factor(i, 10) for i in range(5)]
    np.testing.assert_allclose(rates, expected)


@pytest.mark.parametrize(
    "missing", ["progress", "combiner", "streams", "dropout", "processes", "data"]
)
def test_a_checkpoint_without_a_part_of_its_state_is_refused_in_one_line(make_trainer, missing):
    import json

    trainer = make_trainer(epochs=2)
    trainer.train_epoch(1)
    trainer.finish_epoch({n: {t.kind.main_metric: 0.5} | NONE for n, t in trainer.tasks.items()})
    (folder,) = newest_first(trainer.checkpoints.folder)
    state = json.loads((folder / "state.json").read_text())
    del state[missing]
    (folder / "state.json").write_text(json.dumps(state))
    seal(folder)
    with pytest.raises(CheckpointError, match=missing) as error:
        make_trainer(epochs=2).resume()
    assert len(str(error.value).splitlines()) == 1


NONE = {"accuracy": 0.5, "pearson": 0.5}


def test_clipping_bounds_the_norm_of_the_whole_gradient(make_trainer, monkeypatch):
    trainer = make_trainer(clip=0.01)
    monkeypatch.setattr(trainer.optimizer, "zero_grad", lambda set_to_none: None)
    trainer.train_step(np.array([0, 1, 2]))
    norms = [p.grad.norm() for p in trainer.model.parameters() if p.grad is not None]
    assert torch.stack(norms).norm() == pytest.approx(0.01, rel=1e-3)


@torch.no_grad()
def training_loss(trainer, name, rows):
    trainer.model.eval()
    losses, _ = plain_losses(trainer, name, rows)
    return float(losses[name])


def test_training_lowers_the_loss_and_keeps_the_best_epoch(make_trainer):
    trainer = make_trainer(tasks=("sts",), batches_per_step=1, combiner="sum", epochs=3, lr=1e-3)
    rows = np.arange(40)
    before = training_loss(trainer, "sts", rows)
    trainer.fit()
    assert training_loss(trainer, "sts", rows) < 0.9 * before
    history = trainer.progress.history
    assert [entry["epoch"] for entry in history] == [1, 2, 3]
    best = max(history, key=lambda entry: entry["selection_score"])
    assert trainer.progress.best_epoch == best["epoch"]
    last = {k: v.clone() for k, v in trainer.model.state_dict().items()}
    trainer.model.load(RunFolder(trainer.folder).weights(trainer.config.to_json()))
    changed = any((last[k] != v).any() for k, v in trainer.model.state_dict().items())
    assert changed == (best["epoch"] != 3)


@pytest.mark.parametrize(
    ("sampling", "combiner"),
    [
        ("annealed", "pcgrad"),
        ("round-robin", "sum"),
        ("hybrid", "uncertainty"),
        ("square-root", "epo"),
        ("uniform", "upgrad"),
    ],
)
def test_resumed_equals_uninterrupted(make_trainer, monkeypatch, sampling, combiner):
    changes = {"sampling": sampling, "combiner": combiner, "epochs": 3}
    whole = make_trainer("whole", **changes)
    whole.fit()
    broken = make_trainer("broken", **changes)
    finish = broken.finish_epoch

    def stop_after_two(metrics):
        finish(metrics)
        if broken.progress.epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(broken, "finish_epoch", stop_after_two)
    with pytest.raises(KeyboardInterrupt):
        broken.fit()
    torch.rand(5)  # a fresh process would have another random state
    resumed = make_trainer("broken", **changes)
    assert resumed.resume()
    resumed.fit()
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert resumed.progress.history == whole.progress.history


def test_there_is_nothing_to_resume_in_an_empty_folder(make_trainer):
    assert not make_trainer().resume()


def test_patience_ends_a_run_that_no_longer_improves(make_trainer, monkeypatch):
    trainer = make_trainer(epochs=5, patience=2)
    monkeypatch.setattr("multitask.trainer.selection_score", lambda metrics, tasks: 0.5)
    trainer.fit()
    assert trainer.progress.epoch == 3  # the first was best, two brought nothing


def test_a_frozen_encoder_stays_as_it_was(make_trainer):
    trainer = make_trainer(freeze_encoder=True, combiner="sum")
    before = {k: v.clone() for k, v in trainer.model.bi_encoder.state_dict().items()}
    heads = {k: v.clone() for k, v in trainer.model.heads.state_dict().items()}
    trainer.train_epoch(1)
    for name, value in trainer.model.bi_encoder.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(
        not torch.equal(value, heads[name])
        for name, value in trainer.model.heads.state_dict().items()
    )


def test_the_best_folder_opens_as_an_encoder(make_trainer):
    from minbert import BiEncoder

    trainer = make_trainer(epochs=1)
    trainer.fit()
    encoder = BiEncoder.from_pretrained(RunFolder(trainer.folder).weights(trainer.config.to_json()))
    trainer.model.eval()
    np.testing.assert_array_equal(
        encoder.encode(["one sentence"]), trainer.model.bi_encoder.encode(["one sentence"])
    )


def test_heads_learn_alone_before_the_encoder_moves(make_trainer):
    """LP-FT: nothing of the encoder, not even by weight decay, while it is probed."""
    changes = {"combiner": "pcgrad", "weight_decay": 0.5, "lr": 1e-2, "steps_per_epoch": 9}
    trainer = make_trainer(probe_epochs=1, epochs=2, **changes)

    def weights(module):
        return torch.cat([p.detach().flatten().clone() for p in module.parameters()])

    encoder, heads = trainer.model.bi_encoder, trainer.model.heads
    before = weights(encoder), weights(heads)
    trainer.train_epoch(1)
    assert torch.equal(weights(encoder), before[0])
    assert not torch.equal(weights(heads), before[1])
    trainer.train_epoch(2)
    assert not torch.equal(weights(encoder), before[0])
