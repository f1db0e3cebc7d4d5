"""Losses, scores, predictions and metrics of each task."""

import numpy as np
import pytest
import torch
from torch import nn

from losses import pair_contrastive_loss
from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from tasks import TASK_NAMES, build_task
from tasks.kinds import on_scale, smoothed

H = 4
LOGITS = torch.tensor([[2.0, -1.0], [0.5, 0.25], [-3.0, 3.0]])


def fixed(outputs: torch.Tensor) -> nn.Module:
    """A head that gives these outputs, whatever it is given."""
    head = nn.Module()
    head.forward = lambda *texts: outputs
    return head


@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_task_knows_its_name_and_files(name):
    task = build_task(name)
    assert task.name == name
    assert {"train", "dev"} <= set(task.source.splits) <= {"train", "dev", "test"}
    assert isinstance(task.build_head(H), nn.Module)


def test_unknown_task_and_unknown_option():
    with pytest.raises(KeyError):
        build_task("nope")
    with pytest.raises(TypeError):
        build_task("sst", activation="relu")


@pytest.mark.parametrize("name", ["sst", "qqp"])
def test_classification_loss_is_the_mean_cross_entropy(name):
    task, targets = build_task(name), torch.tensor([0, 0, 1])
    losses = task.compute_losses(LOGITS, (), targets)
    rows = LOGITS.numpy().astype(float)
    expected = np.mean(
        [-r[t] + np.log(np.exp(r).sum()) for r, t in zip(rows, targets, strict=True)]
    )
    assert losses.keys() == {name}
    assert losses[name].shape == ()
    assert losses[name].item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("smoothing", "shares"), [(0.3, (0.3, 0.3)), ({"qqp": 0.2}, (0.0, 0.2))], ids=str
)
@pytest.mark.parametrize("objective", [None, "projection"])
def test_smoothed_labels_are_the_targets_of_tasks_with_classes(smoothing, shares, objective):
    config = RunConfig(
        tasks=("sst", "qqp", "sts"), label_smoothing=smoothing, objective=objective, encoder="tiny"
    )
    tasks, plain = build_tasks(config), build_tasks(config.changed(label_smoothing=0))
    for name, share in zip(("sst", "qqp"), shares, strict=True):
        classes = tasks[name].kind.classes
        logits = torch.randn(3, classes, dtype=torch.float64)
        labels = [0, 1, 1]
        expected = 0.0
        for row, label in zip(logits.tolist(), labels, strict=True):
            total = np.log(np.exp(row).sum())
            for k, x in enumerate(row):
                expected += ((1 - share) * (k == label) + share / classes) * (total - x) / 3
        found = tasks[name].compute_losses(logits, (), torch.tensor(labels))[name]
        assert found.item() == pytest.approx(expected, rel=1e-12)
        assert torch.equal(tasks[name].kind.scores(logits), plain[name].kind.scores(logits))
    values = torch.tensor([1.0, 2.0])
    assert tasks["sts"].kind.loss(values, values + 1) == plain["sts"].kind.loss(values, values + 1)


def test_only_cross_entropy_is_smoothed():
    kind = build_task("sst").kind
    assert smoothed(kind, 0.5).predictions is kind.predictions
    with pytest.raises(ValueError, match="expected a task that is trained by cross-entropy"):
        smoothed(build_task("sts").kind, 0.5)


@pytest.mark.parametrize("name", ["sst", "qqp"])
def test_classification_scores_are_probabilities_and_predictions_their_largest(name):
    task = build_task(name)
    scores = task.scores(fixed(LOGITS), ()).numpy()
    expected = np.exp(LOGITS.numpy()) / np.exp(LOGITS.numpy()).sum(1, keepdims=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert scores.dtype == np.float32
    assert task.kind.predictions(scores).tolist() == [0, 0, 1]


def test_similarity_loss_is_the_squared_error_of_a_fifth_of_the_score():
    values, targets = torch.tensor([5.0, 0.0, 2.5]), torch.tensor([4.0, 0.0, 5.0])
    values.requires_grad_()
    losses = build_task("sts").compute_losses(values, (), targets)
    expected = ((1.0 - 0.8) ** 2 + 0 + (0.5 - 1.0) ** 2) / 3
    assert losses.keys() == {"sts"}
    assert losses["sts"].item() == pytest.approx(expected, rel=1e-6)
    losses["sts"].backward()
    np.testing.assert_allclose(values.grad, 2 / 3 * np.array([0.2, 0, -0.5]) / 5, rtol=1e-5)


def test_a_task_with_several_losses_has_an_objective_each():
    task, targets = build_task("qqp", loss="with-contrastive"), torch.tensor([0, 0, 1])
    assert task.objectives == ("qqp/cross_entropy", "qqp/contrastive")
    u, v = torch.randn(2, 3, 4)
    losses = task.compute_losses(LOGITS, (u, v), targets)
    plain = build_task("qqp").compute_losses(LOGITS, (u, v), targets)
    assert tuple(losses) == task.objectives
    torch.testing.assert_close(losses["qqp/cross_entropy"], plain["qqp"])
    torch.testing.assert_close(losses["qqp/contrastive"], pair_contrastive_loss(u, v, targets))


@pytest.mark.parametrize(
    ("name", "main", "predictions", "targets", "expected"),
    [
        ("qqp", "accuracy", [1, 1, 0, 0], [1, 0, 0, 1], {"accuracy": 0.5, "f1": 0.5}),
        # Classes 0 and 1 right, 3 and 4 wrong.
        ("sst", "accuracy", [0, 1, 4], [0, 1, 3], {"accuracy": 2 / 3, "macro_f1": 2 / 4}),
        ("sts", "pearson", [1.0, 2, 4], [0.0, 1, 5], {"pearson": 0.9897, "spearman": 1}),
    ],
)
def test_metrics_are_those_of_the_leaderboard(name, main, predictions, targets, expected):
    kind = build_task(name).kind
    assert kind.main_metric == main
    found = kind.metrics(np.array(predictions), np.array(targets))
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-4)


def test_the_scale_of_similarities_multiplies_loss_and_divergence_and_nothing_else():
    """BEES, Figure 1: the squared error on the scale from 0 to 5 is 25 times that from 0 to 1."""
    kind = build_task("sts").kind
    values, targets = torch.tensor([1.0, 4.5, 2.0]), torch.tensor([0.5, 5.0, 2.0])
    wide = on_scale(kind, 5.0)
    expected = ((values - targets) ** 2).mean()
    torch.testing.assert_close(wide.loss(values, targets), expected)
    torch.testing.assert_close(wide.divergence(values, targets), expected)
    torch.testing.assert_close(kind.loss(values, targets), expected / 25)
    assert torch.equal(wide.scores(values), values)
    scores = build_task("sts").scores(fixed(values), ()).numpy()
    assert scores.tolist() == kind.predictions(scores).tolist() == values.tolist()
    assert wide.measure(values.numpy(), targets.numpy()) == kind.measure(
        values.numpy(), targets.numpy()
    )


def test_a_runs_similarities_have_the_scale_of_its_configuration():
    config = RunConfig(mode="multitask", tasks=("sst", "sts"))
    values, targets = torch.tensor([1.0]), torch.tensor([3.0])
    assert build_tasks(config)["sts"].kind.loss(values, targets) == pytest.approx(4.0)
    plain = config.changed(similarity_scale=1.0)
    assert build_tasks(plain)["sts"].kind.loss(values, targets) == pytest.approx(4.0 / 25)
