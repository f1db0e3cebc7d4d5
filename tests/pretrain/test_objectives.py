"""Pre-training objectives as tasks: losses, projections in training only, metrics of dev."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

from common.settings import hints_of, methods
from losses import NPair, SuperLoss, simcse_loss, supcon_loss, super_loss, triplet_loss
from losses.objectives import PretrainObjective
from multitask.config_tasks import build_tasks
from multitask.loop.telemetry import read_steps
from multitask.run import train
from multitask.settings.config import RunConfig
from pretrain.pretrain_tasks import class_projection, neighbour_metrics, similarity_metrics

CLASSES = RunConfig(tasks=("sst",), objective="superloss")
SETTINGS = {"contrast_temperature": 0.2, "margin": 0.3, "nli": "pairs.csv"}
LABELS = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])
GROUPS = torch.tensor([0, 1, 1, 2, 3])
BOTH_GROUPS = torch.tensor([[0, 1], [1, -1], [1, 0], [2, 1], [3, 2]])
EXPECTED = {  # loss of texts and their groups or classes, with SETTINGS
    "simcse": lambda u, v, groups: simcse_loss(u, v, 0.2, groups=groups),
    "pairs": lambda u, v, groups: simcse_loss(u, v, 0.2, groups=groups),
    # Groups (N, 2): of a pair, and of its negative.
    "nli": lambda u, v, w, groups: simcse_loss(u, v, 0.2, w, groups[:, 0], groups[:, 1]),
    "superloss": lambda texts, labels: super_loss(texts, labels, 0.2),
    "supcon": lambda texts, labels: supcon_loss(texts, labels, 0.2),
    "class-triplet": lambda texts, labels: triplet_loss(texts, labels, 0.3),
    "npair": NPair().class_loss,
}


OBJECTIVES = {name: methods(PretrainObjective)[name] for name in EXPECTED}


def config_of(name, **settings):
    """Pre-training with those of SETTINGS that the objective has."""
    own = hints_of(OBJECTIVES[name])
    settings |= {"name": name, **{key: SETTINGS[key] for key in own if key in SETTINGS}}
    tasks = ("sst",) if OBJECTIVES[name].of_classes else ("qqp", "sts")
    return RunConfig(objective=settings, tasks=() if OBJECTIVES[name].needs_file else tasks)


def embeddings():
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_each_objective_is_a_task_with_its_loss(name):
    objective = OBJECTIVES[name]
    (task,) = build_tasks(config_of(name)).values()
    assert task.compares_examples == objective.compares_examples
    if objective.of_classes:
        assert (task.kind.classes, task.output, task.loss_switch) == (5, None, None)
        texts, targets = (embeddings(),), LABELS
    else:
        count = 3 if objective.needs_file else 2
        texts, targets = tuple(torch.randn(count, 5, 4)), BOTH_GROUPS if count == 3 else GROUPS
    found = task.compute_losses(task.build_head(4)(*texts), texts, targets)
    ((task_name, loss),) = found.items()
    assert task_name == (f"sst-{name}" if objective.of_classes else name)
    assert loss == EXPECTED[name](*texts, targets)


def test_the_settings_of_superloss_are_those_of_the_loss():
    for name, value in {"top_k": 2, "threshold": 0.1, "top_fraction": 0.5}.items():
        objective = SuperLoss(contrast_temperature=0.2, **{f"hard_{name}": value})
        assert objective.hard == {name: value}
        expected = super_loss(embeddings(), LABELS, 0.2, **{name: value})
        assert objective.losses()[0](embeddings(), LABELS) == expected > 0


def test_hard_negatives_replace_all_negatives_after_their_epochs():
    few = {"positives": 1, "negatives": 4}
    variant = {"super_loss": "equation8", "contrast_temperature": 0.2, **few}
    config = replace(CLASSES, objective=SuperLoss(hard_top_k=2, hard_after=3, **variant), epochs=9)
    (task,) = build_tasks(config).values()
    texts = embeddings()
    plain = super_loss(texts, LABELS, 0.2, "equation8", **few)
    hard = super_loss(texts, LABELS, 0.2, "equation8", top_k=2, **few)
    assert plain != hard
    for epoch, expected in ((1, plain), (3, plain), (4, hard), (9, hard)):
        found = task.in_epoch(epoch).compute_losses(embeddings(), (), LABELS)
        assert found == {"sst-superloss": expected}
    objective = replace(config.objective, hard_after=0)
    (at_once,) = build_tasks(replace(config, objective=objective)).values()
    assert at_once.in_epoch(1).compute_losses(embeddings(), (), LABELS) == {"sst-superloss": hard}


def test_a_run_uses_hard_negatives_from_their_epoch(tmp_path):
    """The losses of the first epoch are equal, those of the second are not."""
    config = replace(CLASSES, encoder="tiny", limit=60, batch_size=20, epochs=2)
    losses = {}
    for name, hard in (("plain", {}), ("hard", {"hard_top_k": 1, "hard_after": 1})):
        train(replace(config, objective=SuperLoss(**hard)), tmp_path / name)
        steps = read_steps(tmp_path / name / "telemetry.jsonl")
        losses[name] = [line["losses"]["sst-superloss"] for line in steps]
    each = len(losses["plain"]) // 2
    assert losses["plain"][:each] == losses["hard"][:each]
    assert losses["plain"][each] < losses["hard"][each], "a nearer negative has a larger loss"


@pytest.mark.parametrize(("kind", "width"), [("none", 4), ("linear", 512), ("nonlinear", 512)])
def test_classes_are_projected_only_in_training(kind, width):
    head = class_projection(kind, 4)
    text = embeddings()
    assert head(text).shape == (8, width)
    assert torch.equal(head.eval()(text), text)
    assert not any(name.endswith("bias") for name, _ in head.named_parameters())
    if kind == "nonlinear":  # as in the paper
        first, second = (weight for _, weight in head.train().named_parameters())
        torch.testing.assert_close(head(text), torch.relu(text @ first.T) @ second.T)


def test_the_setting_projection_is_simcses_layer_in_training_only():
    (task,) = build_tasks(config_of("simcse", projection=True)).values()
    texts, layer = tuple(torch.randn(2, 3, 4)), task.build_head(4)
    weight, bias = layer.parameters()
    for found, text in zip(layer(*texts), texts, strict=True):
        torch.testing.assert_close(found, torch.tanh(text @ weight.T + bias))
    assert layer.eval()(*texts) == texts


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
    cosines = (u * v).sum(1)
    assert found["spearman"] == pytest.approx(spearmanr(cosines, similarities)[0])
    assert found["pearson"] == pytest.approx(np.corrcoef(cosines, similarities)[0, 1], rel=1e-5)
    assert "alignment" not in similarity_metrics(np.concatenate([u, v], 1), np.zeros(6, np.float32))


def test_neighbours_vote_as_in_scikit_learn():
    random = np.random.default_rng(0)
    vectors = random.standard_normal((30, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    classes = random.integers(0, 3, 30)
    peer = KNeighborsClassifier(10, algorithm="brute")  # of unit vectors: the largest cosines
    found = cross_val_predict(peer, vectors, classes, cv=LeaveOneOut())
    expected = pytest.approx(np.mean(found == classes))
    assert neighbour_metrics(vectors, classes)["knn_accuracy"] == expected
