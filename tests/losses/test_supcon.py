"""Supervised contrastive losses: golden values, plain double loops, lower bounds."""

import math

import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from loss_cases import drawn, every_batch, mean, tensor

from losses import contrastive_objectives, lower_bounds, supcon_loss

pytestmark = pytest.mark.numeric


def close(found, expected):
    assert found.item() == pytest.approx(expected or 0.0, rel=1e-6, abs=1e-8)


@golden_cases("supcon")
def test_supcon_has_the_golden_values(case):
    inputs, expected = case["inputs"], case["expected"]
    given = tensor(inputs["embeddings"]), torch.tensor(inputs["labels"]), inputs["tau"]
    close(supcon_loss(*given), expected["mean_valid_anchors"])
    close(supcon_loss(*given, "sum"), expected["sum_over_anchors"])


@golden_cases("scl_ls")
def test_pull_and_push_have_the_golden_values(case):
    inputs, expected = case["inputs"], case["expected"]
    embeddings, labels = tensor(inputs["embeddings_unit"]), torch.tensor(inputs["labels"])
    pull, push = contrastive_objectives(embeddings, labels, inputs["tau"])
    close(pull, expected["l_pos"])
    close(push, expected["l_neg"])
    if "l_neg_shifted_ideal" in expected:
        ideal = lower_bounds(inputs["tau"], inputs["num_classes"])
        close(pull - ideal[0], expected["l_pos_shifted"])
        close(push - ideal[1], expected["l_neg_shifted_ideal"])


def supcon_by_loops(x, y, temperature):
    x = F.normalize(x, dim=1)
    terms = []
    for i, a in enumerate(x):
        others = [k for k in range(len(x)) if k != i]
        positives = [k for k in others if y[k] == y[i]]
        if positives:
            bottom = math.log(sum(math.exp(float(a @ x[k]) / temperature) for k in others))
            tops = [float(a @ x[p]) / temperature - bottom for p in positives]
            terms.append(-mean(tops))
    return mean(terms)


def objectives_by_loops(x, y, temperature):
    found = []
    for positives, sign in ((True, -1), (False, 1)):
        classes = []
        for k in sorted(set(y.tolist())):
            terms = []
            for i in (i for i in range(len(x)) if y[i] == k):
                chosen = [
                    math.exp(float(x[i] @ x[j]) / temperature)
                    for j in range(len(x))
                    if j != i and bool(y[j] == k) == positives
                ]
                if chosen:
                    terms.append(math.log(mean(chosen)))
            if terms:
                classes.append(mean(terms))
        found.append(sign * mean(classes))
    return found


@every_batch
@pytest.mark.parametrize("temperature", [0.1, 0.3, 1.0])
def test_all_three_equal_plain_loops(labels, temperature):
    x, y = drawn(labels)
    close(supcon_loss(x, y, temperature), supcon_by_loops(x, y, temperature))
    given = F.normalize(x, dim=1), y, temperature
    both = zip(contrastive_objectives(*given), objectives_by_loops(*given), strict=True)
    for found, expected in both:
        close(found, expected)


def test_balanced_batches_stay_above_the_lower_bounds():
    labels = [0, 1, 2] * 4
    ideal = lower_bounds(0.3, 3)
    for seed in range(50):
        x, y = drawn(labels, seed)
        pull, push = contrastive_objectives(F.normalize(x, dim=1), y, 0.3)
        assert pull > ideal[0]
        assert push > ideal[1]
    simplex = F.normalize(torch.eye(3, dtype=torch.float64) - 1 / 3, dim=1)[y]
    for found, expected in zip(contrastive_objectives(simplex, y, 0.3), ideal, strict=True):
        close(found, expected)
