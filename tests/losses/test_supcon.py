"""Supervised contrastive losses: golden values, plain double loops, batches that lack something."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from losses import contrastive_objectives, ideal_points, supcon_loss

pytestmark = pytest.mark.numeric

GOLDEN = Path(__file__).parents[1] / "golden"


def cases(topic):
    return json.loads((GOLDEN / f"{topic}.json").read_text())["cases"]


def close(found, expected):
    assert found.item() == pytest.approx(expected or 0.0, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("case", cases("supcon"), ids=lambda case: case["id"])
def test_supcon_golden(case):
    inputs, expected = case["inputs"], case["expected"]
    embeddings = torch.tensor(inputs["embeddings"], dtype=torch.float64)
    labels = torch.tensor(inputs["labels"])
    close(supcon_loss(embeddings, labels, inputs["tau"]), expected["mean_valid_anchors"])
    close(supcon_loss(embeddings, labels, inputs["tau"], "sum"), expected["sum_over_anchors"])


@pytest.mark.parametrize("case", cases("scl_ls"), ids=lambda case: case["id"])
def test_pull_and_push_golden(case):
    inputs, expected = case["inputs"], case["expected"]
    embeddings = torch.tensor(inputs["embeddings_unit"], dtype=torch.float64)
    pull, push = contrastive_objectives(embeddings, torch.tensor(inputs["labels"]), inputs["tau"])
    close(pull, expected["l_pos"])
    close(push, expected["l_neg"])
    if "l_neg_shifted_ideal" in expected:
        ideal = ideal_points(inputs["tau"], inputs["num_classes"])
        close(pull - ideal[0], expected["l_pos_shifted"])
        close(push - ideal[1], expected["l_neg_shifted_ideal"])


def batch(labels, seed=0, width=6):
    torch.manual_seed(seed)
    return torch.randn(len(labels), width, dtype=torch.float64), torch.tensor(labels)


BATCHES = {
    "balanced": [0, 1, 2, 0, 1, 2, 0, 1, 2],
    "unbalanced": [0, 0, 0, 0, 1, 1, 2, 2, 2],
    "a class of one": [0, 0, 1, 2, 2],
    "a class missing": [0, 0, 2, 2, 2],
    "one class": [1, 1, 1],
    "all alone": [0, 1, 2],
    "one example": [0],
}


def supcon_by_loops(x, y, temperature):
    x = [row / row.norm() for row in x]
    terms = []
    for i, a in enumerate(x):
        others = [k for k in range(len(x)) if k != i]
        positives = [k for k in others if y[k] == y[i]]
        if positives:
            bottom = math.log(sum(math.exp(float(a @ x[k]) / temperature) for k in others))
            tops = [float(a @ x[p]) / temperature - bottom for p in positives]
            terms.append(-sum(tops) / len(tops))
    return sum(terms) / len(terms) if terms else 0.0


def objectives_by_loops(x, y, temperature):
    found = []
    for positives, sign in ((True, -1), (False, 1)):
        classes = []
        for k in sorted(set(y.tolist())):
            terms = []
            for i in range(len(x)):
                if y[i] != k:
                    continue
                chosen = [
                    math.exp(float(x[i] @ x[j]) / temperature)
                    for j in range(len(x))
                    if j != i and bool(y[j] == k) == positives
                ]
                if chosen:
                    terms.append(math.log(sum(chosen) / len(chosen)))
            if terms:
                classes.append(sum(terms) / len(terms))
        found.append(sign * sum(classes) / len(classes) if classes else 0.0)
    return found


@pytest.mark.parametrize("labels", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("temperature", [0.1, 0.3, 1.0])
def test_they_equal_plain_loops(labels, temperature):
    x, y = batch(labels)
    close(supcon_loss(x, y, temperature), supcon_by_loops(x, y, temperature))
    unit = F.normalize(x, dim=1)
    for found, expected in zip(
        contrastive_objectives(unit, y, temperature),
        objectives_by_loops(unit, y, temperature),
        strict=True,
    ):
        close(found, expected)


@pytest.mark.parametrize("labels", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("temperature", [0.005, 0.01, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("alike", [False, True])
def test_gradients_are_finite_in_float32(labels, temperature, alike):
    x, y = batch(labels)
    x = (x[:1].expand_as(x) if alike else x).float().clone().requires_grad_()
    losses = (
        supcon_loss(x, y, temperature),
        *contrastive_objectives(F.normalize(x, dim=1), y, temperature),
    )
    for loss in losses:
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=True)
        assert torch.isfinite(loss)
        assert torch.isfinite(gradient).all()


def test_no_batch_with_as_many_of_each_class_falls_below_the_ideal_points():
    y = torch.arange(3).repeat(4)
    pull_ideal, push_ideal = ideal_points(0.3, 3)
    for seed in range(50):
        x = F.normalize(batch(y.tolist(), seed)[0], dim=1)
        pull, push = contrastive_objectives(x, y, 0.3)
        assert pull > pull_ideal
        assert push > push_ideal
    simplex = F.normalize(torch.eye(3, dtype=torch.float64) - 1 / 3, dim=1)[y]
    pull, push = contrastive_objectives(simplex, y, 0.3)
    close(pull, pull_ideal)
    close(push, push_ideal)


def test_reductions():
    with pytest.raises(ValueError, match="expected mean or sum, found 'none'"):
        supcon_loss(*batch([0, 0]), 0.3, "none")
