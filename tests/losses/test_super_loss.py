"""SuperLoss: golden values, plain double loops, hard negatives."""

import math
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from golden_files import golden_cases
from loss_cases import drawn, every_batch, mean, tensor

from losses import super_loss
from losses.super_loss import Variant

pytestmark = pytest.mark.numeric

NAMES = {"algorithm1": "alg1", "equation8": "eq8"}
HARD = {
    "none": {},
    "few positives": {"positives": 1},
    "few negatives": {"negatives": 3},
    "few of both, and hard": {"positives": 2, "negatives": 3, "top_k": 2},
}


@pytest.mark.parametrize("variant", get_args(Variant))
@golden_cases("superloss")
def test_values_are_the_golden_ones(case, variant):
    inputs, hard = case["inputs"], case["inputs"]["hard_negatives"]
    chosen = {
        "none": {},
        "top_k": {"top_k": hard.get("k")},
        "threshold": {"threshold": hard.get("cosine_threshold")},
        "top_fraction": {"top_fraction": hard.get("fraction")},
    }[hard["mode"]]
    embeddings, labels = tensor(inputs["embeddings_unit"]), torch.tensor(inputs["labels"])
    found = super_loss(embeddings, labels, inputs["tau"], variant, **chosen)
    assert found.item() == pytest.approx(case["expected"][NAMES[variant]], rel=1e-9, abs=1e-10)


def by_loops(x, y, temperature, variant, top_k=None, **most):
    classes = {}
    for i in range(len(x)):
        cosines = [float(x[i] @ row) for row in x]
        others = [j for j in range(len(x)) if y[j] == y[i] and j != i]
        negatives = [j for j in range(len(x)) if y[j] != y[i]]
        if not others and variant == "algorithm1":
            continue
        others = others[: most.get("positives")]
        positives = others + [i] * (variant == "equation8")
        turns = {j: int((y[:j] == y[j]).sum()) for j in negatives}

        def rank(j, turns=turns, i=i):
            return turns[j], int(y[j] - y[i]) % 3

        negatives = sorted(negatives, key=rank)[: most.get("negatives")]
        nearest = sorted(negatives, key=lambda j: (-cosines[j], j))
        if top_k is not None:
            negatives = nearest[:top_k]
        term = 0.0
        if negatives:
            near, far = (
                mean([math.exp(cosines[j] / temperature) for j in several])
                for several in (positives, negatives)
            )
            term = -math.log(near / (near + far))
        classes.setdefault(int(y[i]), []).append(term)
    if variant == "algorithm1":
        return mean([mean(terms) for terms in classes.values()])
    return mean([term for terms in classes.values() for term in terms])


def batch(labels, seed=0):
    x, y = drawn(labels, seed)
    return F.normalize(x, dim=1), y


@pytest.mark.parametrize("hard", HARD.values(), ids=HARD)
@every_batch
@pytest.mark.parametrize("variant", get_args(Variant))
def test_it_equals_plain_loops(labels, variant, hard):
    x, y = batch(labels)
    found = super_loss(x, y, 0.3, variant, **hard)
    assert found.item() == pytest.approx(by_loops(x, y, 0.3, variant, **hard), rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cosine_equal_to_the_threshold_is_included(dtype):
    x = torch.tensor([[1, 0], [1, 0], [0.6, 0.8], [-1, 0]], dtype=dtype)
    y = torch.tensor([0, 0, 1, 1])
    nearest, both = (float(super_loss(x, y, 0.1, threshold=t)) for t in (0.6, -1.0))
    assert nearest > both, "with the far one the mean is lower"
    # The far anchor of the second class has nothing above the threshold: its nearest counts.
    assert float(super_loss(x, y, 0.1, threshold=0.61)) == pytest.approx(nearest)
    x = torch.tensor([[1, 0], [1, 0], [0.6, 0.8], [0.8, 0.6]], dtype=dtype)
    at, above = (float(super_loss(x, y, 0.1, threshold=t)) for t in (0.6, 0.6000001))
    assert at < above
