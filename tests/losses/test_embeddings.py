"""Losses of embeddings: golden values, also of incomplete batches; bounds; rounds; groups."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from loss_cases import drawn, tensor

from losses import (
    NPair,
    contrastive_objectives,
    instance_centered_loss,
    label_centered_loss,
    label_embedding_regularizer,
    lower_bounds,
    npair_loss,
    simcse_loss,
    supcon_loss,
    triplet_loss,
)

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


def texts_of(inputs):
    return tensor(inputs["embeddings"]), torch.tensor(inputs["labels"])


@golden_cases("triplet")
@pytest.mark.parametrize("reduction", ["active", "all"])
def test_triplets_have_the_golden_values(case, reduction):
    inputs = case["inputs"]
    settings = (inputs[key] for key in ("margin", "distance_power", "normalise"))
    found = triplet_loss(*texts_of(inputs), *settings, reduction)
    assert found.item() == pytest.approx(case["expected"][f"mean_{reduction}"], rel=1e-9)


@golden_cases("npair")
def test_npairs_have_the_golden_values(case):
    found = npair_loss(*texts_of(case["inputs"]), case["inputs"]["normalise"])
    assert found.item() == pytest.approx(case["expected"]["loss"], rel=1e-9, abs=1e-12)


def test_the_objective_averages_over_rounds():
    x, y = drawn([0, 0, 1, 1, 2, 1, 0, 1, 0, 2, 0, 0, 1])
    first = npair_loss(x[[0, 1, 2, 3, 4, 9]], y[[0, 1, 2, 3, 4, 9]], False)
    second = npair_loss(x[[6, 8, 5, 7]], y[[6, 8, 5, 7]], False)
    # Of the third turn only class 0 has two examples.
    assert NPair().class_loss(x, y).item() == pytest.approx(float(first + second) / 2)
    one_class = torch.zeros(5, dtype=torch.long)
    assert NPair().class_loss(x[:5], one_class).item() == 0


@golden_cases("lacon")
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_lacon_has_the_golden_values(case, dtype):
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


@golden_cases("simcse")
def test_simcse_has_the_golden_values(case):
    inputs = case["inputs"]
    loss = simcse_loss(tensor(inputs["z1"]), tensor(inputs["z2"]), temperature=inputs["tau"])
    assert loss.item() == pytest.approx(case["expected"]["loss"], rel=1e-9, abs=1e-10)


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("further", "theirs"), [(0, None), (3, None), (3, [2, -1, 0])])
def test_simcse_equals_a_plain_loop(further, theirs, grouped):
    torch.manual_seed(0)
    one, two = torch.randn(2, 6, 5, dtype=torch.float64)
    negatives = torch.randn(further, 5, dtype=torch.float64) if further else None
    groups = torch.tensor([0, 1, 0, 2, 1, 0]) if grouped else None
    total = 0.0
    for i in range(6):
        kept = [j for j in range(6) if j == i or not grouped or groups[i] != groups[j]]
        candidates = [two[j] for j in kept]
        for k in range(further):
            if not (grouped and theirs) or theirs[k] != groups[i]:
                candidates.append(negatives[k])
        scores = np.exp([cosine(one[i].numpy(), c.numpy()) / 0.1 for c in candidates])
        total -= np.log(scores[kept.index(i)] / scores.sum())
    negative_groups = torch.tensor(theirs) if theirs and grouped else None
    found = simcse_loss(one, two, 0.1, negatives, groups, negative_groups)
    assert found.item() == pytest.approx(total / 6)
