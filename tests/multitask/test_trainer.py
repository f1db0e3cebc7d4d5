"""The loop: objectives, surgery, heads' own gradients, best epoch, resuming."""

import numpy as np
import pytest
import torch

from multitask.combiners import pcgrad_weights


def shared_gradient(trainer):
    return torch.cat(
        [
            (torch.zeros_like(p) if p.grad is None else p.grad).flatten()
            for p in trainer.model.bi_encoder.parameters()
        ]
    )


def head_gradients(trainer):
    return {
        name: None
        if all(p.grad is None for p in head.parameters())
        else torch.cat([p.grad.flatten() for p in head.parameters()])
        for name, head in trainer.model.heads.items()
    }


def freeze_step(trainer, monkeypatch):
    """Let a step compute its gradient without moving or clearing anything."""
    monkeypatch.setattr(trainer.optimizer, "step", lambda: None)
    monkeypatch.setattr(trainer.optimizer, "zero_grad", lambda set_to_none: None)
    trainer.model.eval()  # no dropout: the same batch gives the same gradient again


def task_gradients(trainer, tasks):
    """Shared and head gradients of each task's next batch, one plain backward each."""
    rows, heads = [], {}
    for task in tasks:
        trainer.model.zero_grad(set_to_none=True)
        trainer.batch_loss(task)[0].backward()
        rows.append(shared_gradient(trainer).double())
        heads[trainer.names[task]] = head_gradients(trainer)[trainer.names[task]]
    trainer.model.zero_grad(set_to_none=True)
    for stream in trainer.streams:
        stream.position = (0, 0)
    return torch.stack(rows), heads


def test_one_step_equals_explicit_projection_of_whole_gradients(make_trainer, monkeypatch):
    trainer = make_trainer(clip=1e9)
    freeze_step(trainer, monkeypatch)
    rows, heads = task_gradients(trainer, (0, 1, 2))
    gram = (rows @ rows.T).numpy()
    assert (gram < 0).any(), "the test needs a conflict"
    order = [[1, 2], [2, 0], [0, 1]]
    monkeypatch.setattr(
        trainer.combiner, "combine", lambda g, losses: Fixed(pcgrad_weights(g, order))
    )
    trainer.train_step(np.array([0, 1, 2]))
    expected = []
    for i, others in enumerate(order):
        p = rows[i].clone()
        for j in others:
            dot = p @ rows[j]
            if dot < 0:
                p -= dot / (rows[j] @ rows[j]) * rows[j]
        expected.append(p)
    expected = torch.stack(expected).sum(0)
    assert (shared_gradient(trainer) - expected).norm() <= 1e-5 * expected.norm()
    for name, gradient in head_gradients(trainer).items():
        torch.testing.assert_close(gradient, heads[name])


class Fixed:
    status = "fixed"

    def __init__(self, weights):
        self.weights = weights


def test_no_head_receives_another_tasks_gradient(make_trainer, monkeypatch):
    trainer = make_trainer(clip=1e9)
    freeze_step(trainer, monkeypatch)
    trainer.train_step(np.array([0, 2, 0]))
    found = head_gradients(trainer)
    assert found["qqp"] is None
    assert found["sst"] is not None
    assert found["sts"] is not None


def test_batches_of_the_same_task_are_averaged_into_one_objective(make_trainer, monkeypatch):
    trainer = make_trainer(clip=1e9)
    freeze_step(trainer, monkeypatch)
    (first, second), _ = task_gradients(trainer, (1, 1))
    trainer.train_step(np.array([1, 1]))
    expected = (first + second) / 2
    assert (shared_gradient(trainer) - expected).norm() <= 1e-5 * expected.norm()


def test_what_the_combiner_says_is_counted(make_trainer):
    trainer = make_trainer(steps_per_epoch=4)
    trainer.train_epoch(1)
    assert set(trainer.progress.statuses) <= {"projected", "no conflict"}
    several = sum(len(set(step)) > 1 for step in trainer.steps(1))
    assert sum(trainer.progress.statuses.values()) == several


@pytest.mark.parametrize("tasks", [("sst",), ("sst", "qqp", "sts")])
def test_sum_adds_the_gradients_up(make_trainer, monkeypatch, tasks):
    trainer = make_trainer(clip=1e9, combiner="sum", tasks=tasks)
    freeze_step(trainer, monkeypatch)
    rows, _ = task_gradients(trainer, range(len(tasks)))
    trainer.train_step(np.arange(len(tasks)))
    expected = rows.sum(0)
    assert (shared_gradient(trainer) - expected).norm() <= 1e-5 * expected.norm()


def test_one_task_drawn_alone_is_left_as_it_is(make_trainer, monkeypatch):
    trainer = make_trainer(clip=1e9)
    freeze_step(trainer, monkeypatch)
    monkeypatch.setattr(trainer.combiner, "combine", None)  # must not be called
    trainer.train_step(np.array([2, 2, 2]))
    assert shared_gradient(trainer).norm() > 0


def test_clipping_bounds_the_norm_of_the_whole_gradient(make_trainer, monkeypatch):
    trainer = make_trainer(clip=0.01)
    freeze_step(trainer, monkeypatch)
    trainer.train_step(np.array([0, 1, 2]))
    norms = [p.grad.norm() for p in trainer.model.parameters() if p.grad is not None]
    assert torch.stack(norms).norm() == pytest.approx(0.01, rel=1e-3)


@torch.no_grad()
def training_loss(trainer, name, rows):
    trainer.model.eval()
    split = trainer.splits[name]["train"]
    texts = trainer.model.embed(split.batch(rows), "fp32")
    targets = split.targets(rows, texts[0].device)
    (loss,) = trainer.tasks[name].losses(trainer.model.heads[name], texts, targets).values()
    return float(loss)


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
    trainer.load_best()
    changed = any((last[k] != v).any() for k, v in trainer.model.state_dict().items())
    assert changed == (best["epoch"] != 3)


@pytest.mark.parametrize("combiner", ["sum", "pcgrad"])
@pytest.mark.parametrize("sampling", ["annealed", "round-robin"])
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
    encoder = BiEncoder.from_pretrained(trainer.best_folder)
    trainer.model.eval()
    np.testing.assert_array_equal(
        encoder.encode(["one sentence"]), trainer.model.bi_encoder.encode(["one sentence"])
    )
