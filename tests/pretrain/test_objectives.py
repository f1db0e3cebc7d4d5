"""Pre-training objectives as tasks, and what is measured of the embeddings."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from losses import simcse_loss, triplet_margin_loss
from multitask.assembly import build_tasks
from multitask.config import RunConfig
from multitask.methods import methods
from multitask.objective_rules import PAIRED as LISTED_PAIRED
from pretrain.objectives import PretrainObjective
from pretrain.pretrain_tasks import TextProjection, similarity_metrics
from pretrain.texts import PAIRED

CONFIG = RunConfig(mode="pretrain", tasks=("qqp", "sts"))
OBJECTIVES = {
    name: one
    for name, one in methods("objective").items()
    if issubclass(one, PretrainObjective) and not one.of_classes
}


def test_tasks_that_make_pairs_are_those_whose_labels_say_what_belongs_together():
    assert set(LISTED_PAIRED) == set(PAIRED)
    assert {name for name, one in OBJECTIVES.items() if one.of_pairs} == {
        "pairs",
        "ranking",
        "triplet",
    }


@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_objective_is_a_task_with_its_loss(name):
    settings = {"margin": 0.3} if name == "triplet" else {"contrast_temperature": 0.1}
    settings |= {"nli": "pairs.csv", "tasks": ()} if name == "nli" else {}
    (task,) = build_tasks(replace(CONFIG, objective=name, **settings)).values()
    torch.manual_seed(0)
    texts = tuple(torch.randn(3, 5, 4))
    texts = texts[:2] if name in ("simcse", "pairs") else texts
    groups = torch.tensor([0, 1, 1, 2, 3])
    expected = {
        2: lambda: simcse_loss(*texts, 0.1, groups=groups),
        3: lambda: simcse_loss(*texts[:2], 0.1, texts[2], groups),
    }[len(texts)]()
    if name == "triplet":
        expected = triplet_margin_loss(*texts, 0.3)
    head = task.build_head(4)
    found = task.compute_losses(head(*texts), texts, groups)
    assert found == {name: expected}
    assert task.compares_examples == (name != "triplet")


def test_the_projection_is_there_in_training_only():
    text = torch.randn(2, 4)
    plain, layer = TextProjection(4, mlp=False), TextProjection(4, mlp=True)
    assert list(plain.parameters()) == []
    assert plain(text, text)[1] is text
    (projected,) = layer(text)
    assert (projected.abs() < 1).all()
    assert not torch.equal(projected, text)
    assert layer.eval()(text)[0] is text


def test_metrics_of_embeddings_equal_plain_loops():
    random = np.random.default_rng(0)
    u, v = random.standard_normal((2, 6, 3))
    u, v = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (u, v))
    similarities = np.array([5, 4, 3, 0, 1, 2.5], np.float32)
    found = similarity_metrics(np.concatenate([u, v], 1).astype(np.float32), similarities)
    alignment = np.mean([np.sum((a - b) ** 2) for a, b in zip(u[:2], v[:2], strict=True)])
    every = [*u, *v]
    kernel = [np.exp(-2 * np.sum((every[i] - every[j]) ** 2)) for i in range(12) for j in range(i)]
    assert found["alignment"] == pytest.approx(alignment, rel=1e-5)
    assert found["uniformity"] == pytest.approx(np.log(np.mean(kernel)), rel=1e-5)
    assert -1 <= found["spearman"] <= 1
    assert "alignment" not in similarity_metrics(np.concatenate([u, v], 1), np.zeros(6, np.float32))
