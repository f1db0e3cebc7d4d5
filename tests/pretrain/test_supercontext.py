"""Pre-training on classes: losses as the configuration says, the projection, what dev measures."""

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from common.settings import hints_of
from losses import every_npair_loss, supcon_loss, super_loss, triplet_loss
from losses.super_loss import VARIANTS
from multitask.assembly import build_tasks
from multitask.config import RunConfig
from multitask.methods import methods
from multitask.run import complete
from multitask.telemetry import read_steps
from pretrain import pretrain_tasks
from pretrain.objectives import ClassObjective, SuperLoss
from pretrain.pretrain_tasks import ClassProjection, neighbour_metrics

CONFIG = RunConfig(mode="pretrain", tasks=("sst",), objective="superloss")
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
OBJECTIVES = [n for n, one in methods("objective").items() if issubclass(one, ClassObjective)]
HEADS = methods("projection_head")


def embeddings():
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


def test_the_settings_of_superloss_are_those_that_the_loss_has():
    assert get_args(hints_of(SuperLoss)["super_loss"]) == VARIANTS
    for variant in VARIANTS:
        assert SuperLoss(super_loss=variant).class_loss(embeddings(), LABELS) > 0
    hard = {"top_k": 2, "threshold": 0.1, "top_fraction": 0.5}
    assert {f"hard_{name}" for name in hard} < SuperLoss.by_key().keys()
    for name, value in hard.items():
        objective = SuperLoss(contrast_temperature=0.2, **{f"hard_{name}": value})
        assert objective.hard == {name: value}
        expected = super_loss(F.normalize(embeddings()), LABELS, 0.2, **{name: value})
        assert objective.losses()[0](embeddings(), LABELS) == expected > 0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_objective_is_a_task_with_its_loss(name):
    own = {"class-triplet": {"margin": 0.3}, "npair": {}}
    settings = own.get(name, {"contrast_temperature": 0.2})
    (task,) = build_tasks(replace(CONFIG, objective=name, **settings)).values()
    texts = embeddings()
    expected = {
        "superloss": lambda: super_loss(F.normalize(texts), LABELS, 0.2),
        "supcon": lambda: supcon_loss(texts, LABELS, 0.2),
        "class-triplet": lambda: triplet_loss(texts, LABELS, 0.3),
        "npair": lambda: every_npair_loss(texts, LABELS, False),
    }[name]()
    assert task.compute_losses(task.build_head(4)(texts), (texts,), LABELS) == {
        f"sst-{name}": expected
    }
    assert task.compares_examples
    assert (task.kind.classes, task.output, task.loss_switch) == (5, None, None)


def test_hard_negatives_take_over_after_their_epochs():
    changed = {"super_loss": "equation8", "positives": 1, "negatives": 4, "epochs": 9}
    changed |= {"contrast_temperature": 0.2, "hard_after": 3}
    config = replace(CONFIG, hard_top_k=2, **changed)
    (task,) = build_tasks(config).values()
    unit, few = F.normalize(embeddings()), {"positives": 1, "negatives": 4}
    plain = super_loss(unit, LABELS, 0.2, "equation8", **few)
    hard = super_loss(unit, LABELS, 0.2, "equation8", top_k=2, **few)
    assert plain != hard
    for epoch, expected in ((1, plain), (3, plain), (4, hard), (9, hard)):
        found = task.in_epoch(epoch).compute_losses(embeddings(), (), LABELS)
        assert found == {"sst-superloss": expected}
    (at_once,) = build_tasks(replace(config, hard_after=0)).values()
    assert at_once.in_epoch(1).compute_losses(embeddings(), (), LABELS) == {"sst-superloss": hard}


@pytest.mark.parametrize(("kind", "width"), [("none", 4), ("linear", 512), ("nonlinear", 512)])
def test_the_projection_is_there_in_training_only(kind, width):
    head, text = ClassProjection(4, HEADS[kind]()), embeddings()
    assert head(text).shape == (8, width)
    assert torch.equal(head.eval()(text), text)
    assert not any(name.endswith("bias") for name, _ in head.named_parameters())
    if kind == "nonlinear":  # as in the paper
        first, second = (weight for _, weight in head.train().named_parameters())
        torch.testing.assert_close(head(text), torch.relu(text @ first.T) @ second.T)


def test_neighbours_vote_by_plain_loops():
    random = np.random.default_rng(0)
    vectors = random.standard_normal((30, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    classes = random.integers(0, 3, 30)
    right = 0
    for row in range(30):
        others = sorted(
            (j for j in range(30) if j != row), key=lambda j: -vectors[row] @ vectors[j]
        )
        votes = np.bincount(classes[others[:10]], minlength=3)
        right += votes.argmax() == classes[row]
    assert neighbour_metrics(vectors, classes)["knn_accuracy"] == pytest.approx(right / 30)


def test_of_many_examples_some_are_looked_at_and_few_have_few_neighbours(monkeypatch):
    same = np.ones((3, 2), np.float32)
    assert neighbour_metrics(same, np.array([1, 1, 1])) == {"knn_accuracy": 1.0}
    assert neighbour_metrics(same[:1], np.array([1])) == {"knn_accuracy": 0.0}
    monkeypatch.setattr(pretrain_tasks, "MAX_EXAMPLES", 3)
    vectors, classes = np.eye(4, 2, dtype=np.float32) + 0.1, np.array([0, 0, 0, 1])
    rows = np.sort(np.random.default_rng(0).permutation(4)[:3])
    some = neighbour_metrics(vectors[rows], classes[rows])
    assert neighbour_metrics(vectors, classes) == some


def test_a_run_takes_the_hard_negatives_when_it_is_their_turn(tmp_path):
    """The same first epoch, another second one."""
    config = replace(CONFIG, encoder="tiny", limit=60, batch_size=20, epochs=2, per_class=True)
    losses = {}
    for name, hard in (("plain", {}), ("hard", {"hard_top_k": 1, "hard_after": 1})):
        complete(replace(config, **hard), tmp_path / name)
        steps = read_steps(tmp_path / name / "telemetry.jsonl")
        losses[name] = [line["losses"]["sst-superloss"] for line in steps]
    each = len(losses["plain"]) // 2
    assert losses["plain"][:each] == losses["hard"][:each]
    assert losses["plain"][each] < losses["hard"][each], "a nearer negative costs more"
