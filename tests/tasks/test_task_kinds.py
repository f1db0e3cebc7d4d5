"""Losses, scores, predictions and metrics of each task."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from multitask.config_tasks import build_tasks
from multitask.settings.config import RunConfig
from tasks import build_task
from tasks.kinds import on_scale

LOGITS = torch.tensor([[2.0, -1.0], [0.5, 0.25], [-3.0, 3.0]])


def fixed(outputs: torch.Tensor) -> nn.Module:
    """A head that gives these outputs, whatever it is given."""
    head = nn.Module()
    head.forward = lambda *texts: outputs
    return head


@pytest.mark.parametrize("name", ["sst", "qqp"])
def test_classes_have_cross_entropy_and_the_largest_of_their_probabilities(name):
    task, targets = build_task(name), torch.tensor([0, 0, 1])
    losses = task.compute_losses(LOGITS, (), targets)
    shares = np.exp(LOGITS.numpy().astype(float))
    shares /= shares.sum(1, keepdims=True)
    expected = np.mean([-np.log(row[t]) for row, t in zip(shares, targets, strict=True)])
    assert losses.keys() == {name}
    assert losses[name].shape == ()
    assert losses[name].item() == pytest.approx(expected, rel=1e-5)
    scores = task.scores(fixed(LOGITS), ()).numpy()
    np.testing.assert_allclose(scores, shares, rtol=1e-5)
    assert scores.dtype == np.float32
    assert task.kind.predictions(scores).tolist() == [0, 0, 1]


@pytest.mark.parametrize("objective", [None, "projection"])
def test_smoothed_labels_are_the_targets_of_tasks_with_classes(objective):
    share = 0.3
    config = RunConfig(
        tasks=("sst", "qqp", "sts"), label_smoothing=share, objective=objective, encoder="tiny"
    )
    tasks, plain = build_tasks(config), build_tasks(replace(config, label_smoothing=0))
    for name in ("sst", "qqp"):
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


def test_the_scale_of_similarities_multiplies_loss_and_divergence_and_nothing_else():
    """BEES, Figure 1: the squared error on the scale from 0 to 5 is 25 times that from 0 to 1."""
    task, values = build_task("sts"), torch.tensor([1.0, 4.5, 2.0], requires_grad=True)
    kind, targets = task.kind, torch.tensor([0.5, 5.0, 2.0])
    wide, expected = on_scale(kind, 5.0), ((values - targets) ** 2).mean()
    losses = task.compute_losses(values, (), targets)
    assert losses.keys() == {"sts"}
    torch.testing.assert_close(losses["sts"], expected / 25)
    (gradient,) = torch.autograd.grad(losses["sts"], values)
    torch.testing.assert_close(gradient, 2 / 3 * (values - targets).detach() / 25)
    torch.testing.assert_close(wide.loss(values, targets), expected)
    torch.testing.assert_close(wide.divergence(values, targets), expected)
    assert torch.equal(wide.scores(values), values)
    scores = task.scores(fixed(values.detach()), ()).numpy()
    assert scores.tolist() == kind.predictions(scores).tolist() == values.tolist()
    assert wide.measure(scores, targets.numpy()) == kind.measure(scores, targets.numpy())
    config = RunConfig(mode="multitask", tasks=("sst", "sts"))
    for one, factor in ((config, 1), (replace(config, similarity_scale=1.0), 1 / 25)):
        found = build_tasks(one)["sts"].kind.loss(values, targets)
        torch.testing.assert_close(found, factor * expected)
