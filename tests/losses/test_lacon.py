"""LaCon's three losses: golden values, the usual mistakes not made, plain loops, small batches."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from losses import instance_centered_loss, label_centered_loss, label_embedding_regularizer

pytestmark = pytest.mark.numeric

GOLDEN = Path(__file__).parents[1] / "golden" / "lacon.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


def tensors(inputs):
    h, labels = (torch.tensor(inputs[key], dtype=torch.float64) for key in "HL")
    return h, labels, torch.tensor(inputs["labels"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_values_and_none_of_the_traps(case):
    inputs, expected = case["inputs"], case["expected"]
    h, label_embeddings, labels = tensors(inputs)
    temperature, heads = inputs["tau"], inputs["heads"]
    found = {
        "icl": instance_centered_loss(h, label_embeddings, labels, temperature),
        "icl_multi_head": instance_centered_loss(h, label_embeddings, labels, temperature, heads),
        "lcl": label_centered_loss(h, label_embeddings, labels, temperature),
        "ler": label_embedding_regularizer(label_embeddings),
    }
    for name, value in found.items():
        assert value.item() == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name
    traps = {
        "icl_multi_head": ("icl_multi_head_without_per_head_renormalisation",),
        "lcl": ("lcl_mean_over_positives", "lcl_denominator_with_positive"),
        "ler": ("ler_divided_by_C_squared",),
    }
    for name, several in traps.items():
        for trap in several:
            wrong = expected["trap_values"][trap]
            if abs(wrong - expected[name]) > 1e-6:  # some batches do not tell them apart
                assert found[name].item() != pytest.approx(wrong, abs=1e-7), trap


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_matching_is_the_argmax_of_the_single_head_logits(case):
    inputs = case["inputs"]
    h, label_embeddings, _ = tensors(inputs)
    if case["expected"]["pred"] is not None:
        cosines = F.normalize(h, dim=1) @ F.normalize(label_embeddings, dim=1).T
        assert cosines.argmax(1).tolist() == case["expected"]["pred"]


def batch(labels, classes=4, width=6, seed=0):
    torch.manual_seed(seed)
    vectors = torch.randn(len(labels) + classes, width, dtype=torch.float64)
    return vectors[: len(labels)], vectors[len(labels) :], torch.tensor(labels)


def cosine(a, b):
    return float(a @ b / (a.norm() * b.norm()))


BATCHES = {
    "all classes": [0, 1, 2, 3, 0, 1, 2, 3],
    "a class missing": [0, 0, 2, 2, 2],
    "one class": [1, 1, 1],
    "one example": [2],
}


@pytest.mark.parametrize("labels", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_they_equal_plain_loops(labels, heads):
    h, anchors, y = batch(labels)
    size = h.shape[1] // heads
    icl = 0.0
    for k in range(heads):
        part = slice(k * size, (k + 1) * size)
        for i in range(len(y)):
            scores = [math.exp(cosine(h[i, part], row[part]) / 0.2) for row in anchors]
            icl -= math.log(scores[y[i]] / sum(scores)) / len(y)
    found = instance_centered_loss(h, anchors, y, 0.2, heads)
    assert found.item() == pytest.approx(icl)
    terms = []
    for p in sorted(set(labels)):
        negatives = [math.exp(cosine(anchors[p], h[b]) / 0.2) for b in range(len(y)) if y[b] != p]
        if negatives:
            positives = [cosine(anchors[p], h[a]) / 0.2 for a in range(len(y)) if y[a] == p]
            terms.append(-sum(s - math.log(sum(negatives)) for s in positives))
    expected = sum(terms) / len(terms) if terms else 0.0
    assert label_centered_loss(h, anchors, y, 0.2).item() == pytest.approx(expected)


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_the_regulariser_by_loops(classes):
    _, anchors, _ = batch([0], classes)
    pairs = [(i, j) for i in range(classes) for j in range(classes) if i != j]
    values = [math.exp(1 + cosine(anchors[i], anchors[j])) - 1 for i, j in pairs]
    expected = sum(values) / len(values) if values else 0.0
    assert label_embedding_regularizer(anchors).item() == pytest.approx(expected)


@pytest.mark.parametrize("labels", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("classes", [4, 8])
def test_gradients_are_finite_in_float32(labels, classes):
    h, anchors, y = batch(labels, classes)
    h, anchors = h.float().requires_grad_(), anchors.float().requires_grad_()
    loss = (
        instance_centered_loss(h, anchors, y, 0.01, 2)
        + label_centered_loss(h, anchors, y, 0.01)
        + label_embedding_regularizer(anchors)
    )
    for gradient in torch.autograd.grad(loss, (h, anchors)):
        assert torch.isfinite(gradient).all()


def test_one_label_alone():
    h, anchors, y = batch([0, 0], classes=1)
    assert instance_centered_loss(h, anchors, y, 0.1).item() == pytest.approx(0)
    assert label_centered_loss(h, anchors, y, 0.1).item() == 0
    assert label_embedding_regularizer(anchors).item() == 0


def test_heads_that_do_not_divide_the_width_are_refused():
    h, anchors, y = batch([0])
    with pytest.raises(ValueError, match="expected a divisor of the width 6, found 4"):
        instance_centered_loss(h, anchors, y, 0.1, 4)
