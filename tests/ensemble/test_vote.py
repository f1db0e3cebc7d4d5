"""Majority vote: golden values, a plain loop, ties."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ensemble import majority_vote

GOLDEN = Path(__file__).parents[1] / "golden" / "ensemble_vote.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_values(case):
    inputs = case["inputs"]
    found = majority_vote(inputs["predictions"], inputs.get("probabilities"))
    assert found.tolist() == case["expected"]["prediction"]


def by_hand(votes, probabilities):
    counted = Counter(votes)
    most = max(counted.values())
    tied = sorted(one for one, count in counted.items() if count == most)
    if probabilities is None:
        return tied[0]
    summed = [sum(model[one] for model in probabilities) for one in tied]
    return next(
        one for one, value in zip(tied, summed, strict=True) if value >= max(summed) - 1e-12
    )


@pytest.mark.parametrize("models", range(1, 7))
@pytest.mark.parametrize("given", [False, True])
def test_it_equals_a_plain_loop(models, given):
    draw = np.random.default_rng(models)
    votes = draw.integers(5, size=(models, 200))
    probabilities = draw.dirichlet(np.ones(5), size=(models, 200)).round(1) if given else None
    found = majority_vote(votes, probabilities)
    for row in range(200):
        mine = None if probabilities is None else probabilities[:, row].tolist()
        assert found[row] == by_hand(votes[:, row].tolist(), mine)
    assert majority_vote(np.zeros((models, 0))).tolist() == []


@pytest.mark.parametrize(
    ("predictions", "probabilities", "expected"),
    [
        ([], None, "at least one model"),
        ([1, 2], None, "models x examples"),
        ([[0.5]], None, "integers from 0"),
        ([[-1]], None, "integers from 0"),
        ([[2]], [[[0.5, 0.5]]], "below 2"),
        ([[0]], [[0.5]], "1 models x 1 examples x classes"),
    ],
)
def test_what_does_not_fit_is_refused(predictions, probabilities, expected):
    with pytest.raises(ValueError, match=expected):
        majority_vote(predictions, probabilities)
