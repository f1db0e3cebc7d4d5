"""Losses of labelled texts: golden values, also of incomplete batches; bounds; rounds."""

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
