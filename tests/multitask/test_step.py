"""The gradient of a step: surgery in D dimensions, heads, batches of one task, parts of a batch."""

import numpy as np
import pytest
import torch
from plain import plain_losses, project_explicitly, step_terms
from tolerances import assert_near, assert_near_in_norm
from two_losses import TwoLosses

from common.errors import RunError
from multitask.combiners import Combined, pcgrad_weights
from multitask.loop.batches import next_batches
from multitask.regularizers import Smart

pytestmark = pytest.mark.numeric

BOTH = {"mode": "single", "tasks": (TwoLosses(),), "batches_per_step": 1}
LOSSES = ("two/cross_entropy", "two/contrastive")


def shared_gradient(trainer):
    return torch.cat(
        [
            (torch.zeros_like(p) if p.grad is None else p.grad.to_dense()).flatten()
            for p in trainer.model.bi_encoder.parameters()
        ]
    ).double()


def head_gradients(trainer):
    return {
        name: None
        if all(p.grad is None for p in head.parameters())
        else torch.cat([p.grad.flatten() for p in head.parameters()])
        for name, head in trainer.model.heads.items()
    }


def plain_gradient(trainer, name, rows, objective=None):
    """Shared and head gradient of one objective on some rows, by one plain backward."""
    trainer.model.zero_grad(set_to_none=True)
    losses, _ = plain_losses(trainer, name, rows)
    (losses[objective or name]).backward()
    found = shared_gradient(trainer), head_gradients(trainer)[name]
    trainer.model.zero_grad(set_to_none=True)
    return found


def drawn(trainer, *tasks):
    """Batches of a step, without moving the streams."""
    batches = next_batches(
        trainer.streams, np.array([[*trainer.tasks].index(task) for task in tasks])
    )
    for stream in trainer.streams:
        stream.position = (0, 0)
    return batches


def fixed(trainer, weigh):
    """Let the combiner answer `weigh(gram, losses, drawn)`; returns what it was asked."""
    asked = []

    def combine(gram, losses, drawn):
        asked.append((gram, losses, list(drawn)))
        return Combined(np.asarray(weigh(gram)), "fixed")

    object.__setattr__(trainer.combiner, "combine", combine)
    return asked


def assert_same(trainer, found, expected):
    assert_near_in_norm(found, expected, step_terms(trainer))


@pytest.fixture
def trainer(make_trainer):
    return make_trainer(dropout=False)


def test_a_pcgrad_step_equals_projection_of_complete_gradients(trainer):
    """PCGrad in D dimensions through the whole model, word embeddings included."""
    batches = drawn(trainer, "sst", "qqp", "sts")
    plain = [plain_gradient(trainer, name, rows[0]) for name, rows in batches.items()]
    rows = torch.stack([shared for shared, _ in plain])
    gram = (rows @ rows.T).numpy()
    assert (gram < 0).any(), "the test needs a conflict"
    order = [[1, 2], [2, 0], [0, 1]]
    asked = fixed(trainer, lambda g: pcgrad_weights(g, order))
    result = trainer.gradient(batches)
    assert_near(asked[0][0], gram, 2 * step_terms(trainer))  # products of two rows
    assert list(result.grams) == ["embeddings", "layer 1", "layer 2"]
    assert_near(sum(result.grams.values()), gram, 2 * step_terms(trainer))
    assert asked[0][2] == [0, 1, 2]
    expected = torch.from_numpy(project_explicitly(rows.numpy(), order).sum(0))
    assert_same(trainer, shared_gradient(trainer), expected)
    words = trainer.model.bi_encoder.encoder.embeddings.word.weight.grad
    assert words.layout == torch.strided
    assert words.abs().sum() > 0
    for (_, head), found in zip(plain, head_gradients(trainer).values(), strict=True):
        assert_same(trainer, found, head)
    assert result.objectives == ("sst", "qqp", "sts")
    np.testing.assert_array_equal(result.losses, asked[0][1])
    assert (result.losses > 0).all()


def test_a_task_that_is_drawn_twice_is_one_objective_that_counts_twice(trainer):
    rows = [np.arange(4), np.array([7])]  # the second batch is a short one
    (first, head), (second, other) = (plain_gradient(trainer, "qqp", one) for one in rows)
    result = trainer.gradient({"qqp": rows})
    assert_same(trainer, shared_gradient(trainer), first + second)
    assert_same(trainer, head_gradients(trainer)["qqp"], head + other)
    assert (result.examples, result.objectives) == (5, ("qqp",))
    assert head_gradients(trainer)["sst"] is None, "no head receives another task's gradient"


PARTS = [
    *({"combiner": one, "class_weights": "balanced"} for one in ("sum", "pcgrad")),
    {"tasks": ("sst", "qqp"), "combiner": "pcgrad"},
    *({"only": "sst", "objective": one} for one in ("lacon-fusion", "leam", "lsan", "epo")),
    BOTH | {"combiner": "pcgrad", "gradients": "representation"},
]


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("settings", PARTS, ids=str)
def test_micro_batches_give_the_gradient_of_the_whole_batch(make_trainer, settings, size):
    """Memory is saved, but the combiner sees the gradients of the whole batch."""
    found = []
    for micro_batch in (None, size):
        changes = settings | {"micro_batch": micro_batch, "batch_size": 8}
        trainer = make_trainer(f"{micro_batch}", **changes, dropout=False)
        result = trainer.gradient(drawn(trainer, *trainer.tasks))
        found.append((shared_gradient(trainer), head_gradients(trainer), result.combined.weights))
    (one, heads, weights), (other, same_heads, same_weights) = found
    assert_same(trainer, other, one)
    for name, head in heads.items():
        assert_same(trainer, same_heads[name], head)
    assert_near(same_weights, weights, step_terms(trainer))


@pytest.mark.parametrize("combiner", ["epo", "famo"])
def test_losses_that_a_combiner_cannot_use_are_refused(make_trainer, combiner):
    trainer = make_trainer(combiner=combiner)
    line = f"combiner {combiner}: expected losses of zero or more, found -1 of sts"
    with pytest.raises(RunError, match=line):
        trainer.gradient.combine(np.eye(2), np.array([0.5, -1.0]), ("sst", "sts"))


@pytest.mark.parametrize("combiner", ["sum", "pcgrad", "mgda"])
@pytest.mark.parametrize("micro_batch", [None, 3])
@pytest.mark.parametrize(
    ("settings", "count"), [(BOTH, 2), ({"objective": "epo", "batch_size": 6}, 7)], ids=str
)
def test_each_loss_of_a_task_is_an_objective(make_trainer, combiner, micro_batch, settings, count):
    trainer = make_trainer(combiner=combiner, micro_batch=micro_batch, **settings, dropout=False)
    batches = drawn(trainer, *trainer.tasks)
    rows = [
        plain_gradient(trainer, task, batches[task][0], name)[0]
        for task in trainer.tasks
        for name in trainer.tasks[task].objectives
    ]
    result = trainer.gradient(batches, measure=True)
    assert len(result.objectives) == len(rows) == count
    assert result.grams
    weights = torch.from_numpy(result.combined.weights)
    assert_same(trainer, shared_gradient(trainer), weights @ torch.stack(rows))


def test_the_gram_matrix_at_the_representation_is_that_of_the_embeddings_gradients(make_trainer):
    trainer = make_trainer(combiner="pcgrad", gradients="representation", **BOTH, dropout=False)
    batches = drawn(trainer, "two")
    rows = batches["two"][0]
    leaves = [text.detach().requires_grad_() for text in plain_losses(trainer, "two", rows)[1]]
    losses, _ = plain_losses(trainer, "two", rows, leaves)
    plain = torch.stack(
        [
            torch.cat(torch.autograd.grad(loss, leaves, retain_graph=True)).flatten()
            for loss in losses.values()
        ]
    )
    result = trainer.gradient(batches)
    assert_near(result.grams["representation"], plain @ plain.T, 2 * step_terms(trainer))


@pytest.mark.parametrize("gradients", ["representation", "parameters"])
def test_a_contrastive_step_is_algorithm_1(make_trainer, gradients):
    """(1 - weight) CE + weight (b_1 pull + b_2 push); the head has its share of the first."""
    objective = {"name": "epo", "weight": 0.4}
    changes = {"class_balanced": True, "batch_size": 10}
    trainer = make_trainer(
        only="sst", dropout=False, gradients=gradients, objective=objective, **changes
    )
    batches = drawn(trainer, "sst")
    names = ("sst/cross_entropy", "sst/pull", "sst/push")
    plain = [plain_gradient(trainer, "sst", batches["sst"][0], name)[0] for name in names]
    entropy = make_trainer("plain", only="sst", dropout=False)
    entropy_gradient, head = plain_gradient(entropy, "sst", batches["sst"][0])
    result = trainer.gradient(batches)
    assert result.objectives == names
    weights = torch.from_numpy(result.combined.weights)
    assert weights[1:].sum().item() == pytest.approx(0.4)
    assert_same(trainer, shared_gradient(trainer), weights @ torch.stack(plain))
    assert_same(
        trainer,
        shared_gradient(trainer),
        0.6 * entropy_gradient + weights[1:] @ torch.stack(plain[1:]),
    )
    assert_same(trainer, head_gradients(trainer)["sst"], 0.6 * head)


def test_losses_after_a_step_are_of_the_same_batches_with_the_same_dropout(make_trainer):
    """Without an update they are the losses before it."""
    trainer = make_trainer(combiner="famo", regularizers=Smart({"sst": 1.0}))
    trainer.model.train()
    seen = []
    object.__setattr__(trainer.combiner, "after_step", lambda *shown: seen.append(shown))
    batches = drawn(trainer, "sst", "sts")
    result = trainer.gradient(batches)
    trainer.model.zero_grad(set_to_none=True)
    trainer.gradient.after_step(batches, 0, result)
    ((before, after, chosen),) = seen
    np.testing.assert_array_equal(before, after)
    assert chosen == [0, 2]
    assert all(p.grad is None for p in trainer.model.parameters())
    trainer.train_step(np.array([0, 2]))
    _, (before, after, chosen) = seen
    assert chosen == [0, 2]
    assert (before != after).all()
