"""Class weights in a run: counts of the training split, and what excludes them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from multitask import RunConfig, table_tasks
from multitask.assembly import assemble
from multitask.config_tasks import build_tasks
from tasks.kinds import classification
from tasks.objectives import balanced_weights

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
TOPIC, TAGS = table_tasks(REQUESTS, text="message", labels=["topic", "tags:type=multi-label"])


def config_of(*tasks, **settings):
    return RunConfig(tasks=tasks, encoder="tiny", **settings)


def expected_loss(logits, targets, train):
    """The loss as double loops over examples and classes, from the training targets."""
    n, total = len(train), 0.0
    counts = np.bincount(train)
    for row, y in zip(logits.log_softmax(-1).tolist(), targets.tolist(), strict=True):
        total += -row[y] * n / (len(counts) * counts[y])
    return total / len(targets)


@pytest.mark.numeric
def test_losses_count_the_training_examples_that_a_limit_leaves(capsys):
    config = config_of(TOPIC, TAGS, limit=30, class_weights="balanced")
    tasks, _, splits = assemble(config)
    printed, plain = capsys.readouterr().out, build_tasks(config)
    assert tasks["tags"].losses == {}  # several labels have no weights
    train = splits["topic"]["train"].examples.targets
    assert len(train) == 30
    head = plain["topic"].build_head(8).eval()
    logits = head(torch.randn(7, 8)).detach().double()
    targets = torch.from_numpy(train[:7])
    assert tasks["topic"].objectives == plain["topic"].objectives == ("topic",)
    loss = tasks["topic"].compute_losses(logits, (), targets)["topic"]
    assert loss.item() == pytest.approx(expected_loss(logits, targets, train), rel=1e-9)
    # A teacher, predictions and metrics use the kind, whose loss is the plain one.
    assert tasks["topic"].kind.loss(logits, targets) == plain["topic"].kind.loss(logits, targets)
    assert "topic: weights of classes: " in printed


def test_weights_are_scikit_learns_and_1_where_nothing_can_be_weighted():
    from sklearn.utils.class_weight import compute_class_weight

    labels = np.array([0] * 7 + [1] + [2] * 4)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=labels)
    assert balanced_weights(classification(3), labels) == pytest.approx(expected, rel=1e-14)
    gap = balanced_weights(classification(4), labels)  # a class without examples
    assert gap.tolist() == [*balanced_weights(classification(3), labels), 1]
