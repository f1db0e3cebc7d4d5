"""LaCon's losses: golden values, known mistakes, plain loops, small batches."""

import math

import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from loss_cases import drawn, every_batch, mean, tensor

from losses import instance_centered_loss, label_centered_loss, label_embedding_regularizer

pytestmark = pytest.mark.numeric

TRAPS = {
    "icl_multi_head": ("icl_multi_head_without_per_head_renormalisation",),
    "lcl": ("lcl_mean_over_positives", "lcl_denominator_with_positive"),
    "ler": ("ler_divided_by_C_squared",),
}


@golden_cases("lacon")
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_golden_values_and_known_mistakes(case, dtype):
    inputs, expected = case["inputs"], case["expected"]
    h, anchors, labels = (
        tensor(inputs["H"]),
        tensor(inputs["L"]),
        tensor(inputs["labels"]).to(dtype),
    )
    found = {
        "icl": instance_centered_loss(h, anchors, labels, inputs["tau"]),
        "icl_multi_head": instance_centered_loss(
            h, anchors, labels, inputs["tau"], inputs["heads"]
        ),
        "lcl": label_centered_loss(h, anchors, labels, inputs["tau"]),
        "ler": label_embedding_regularizer(anchors),
    }
    for name, value in found.items():
        assert value.item() == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name
        for trap in TRAPS.get(name, ()):
            wrong = expected["trap_values"][trap]
            if abs(wrong - expected[name]) > 1e-6:  # some batches do not tell them apart
                assert value.item() != pytest.approx(wrong, abs=1e-7), trap


def batch(labels, classes=3):
    """Texts, a vector for each class, and the labels of the texts."""
    vectors, _ = drawn([*labels, *range(classes)])
    return vectors[: len(labels)], vectors[len(labels) :], tensor(labels).long()


def cosine(a, b):
    return float(F.cosine_similarity(a, b, dim=0))


@every_batch
@pytest.mark.parametrize("heads", [1, 2, 6])
def test_both_contrastive_losses_equal_plain_loops(labels, heads):
    h, anchors, y = batch(labels)
    icl = []
    for part in (slice(k, k + 6 // heads) for k in range(0, 6, 6 // heads)):
        for i in range(len(y)):
            scores = [math.exp(cosine(h[i, part], row[part]) / 0.2) for row in anchors]
            icl.append(-math.log(scores[y[i]] / sum(scores)))
    found = instance_centered_loss(h, anchors, y, 0.2, heads)
    assert found.item() == pytest.approx(heads * mean(icl))
    lcl = []
    for p in sorted(set(labels)):
        negatives = [math.exp(cosine(anchors[p], h[b]) / 0.2) for b in range(len(y)) if y[b] != p]
        if negatives:
            positives = [cosine(anchors[p], h[a]) / 0.2 for a in range(len(y)) if y[a] == p]
            lcl.append(-sum(s - math.log(sum(negatives)) for s in positives))
    assert label_centered_loss(h, anchors, y, 0.2).item() == pytest.approx(mean(lcl))


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_the_regulariser_equals_plain_loops(classes):
    _, anchors, _ = batch([0], classes)
    values = [
        math.exp(1 + cosine(one, other)) - 1
        for i, one in enumerate(anchors)
        for j, other in enumerate(anchors)
        if i != j
    ]
    assert label_embedding_regularizer(anchors).item() == pytest.approx(mean(values))
