"""Majority votes and averages: golden values, a plain loop, ties, shapes."""

from collections import Counter

import numpy as np
import pytest
from golden_files import golden_cases

from ensemble import average, majority_vote


@golden_cases("ensemble_vote")
def test_votes_have_the_golden_values(case):
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
@pytest.mark.parametrize("with_probabilities", [False, True])
def test_votes_equal_a_plain_loop(models, with_probabilities):
    draw = np.random.default_rng(models)
    votes = draw.integers(5, size=(models, 200))
    probabilities = (
        draw.dirichlet(np.ones(5), size=(models, 200)).round(1) if with_probabilities else None
    )
    found = majority_vote(votes, probabilities)
    for row in range(200):
        mine = None if probabilities is None else probabilities[:, row].tolist()
        assert found[row] == by_hand(votes[:, row].tolist(), mine)
    assert majority_vote(np.zeros((models, 0))).tolist() == []


@pytest.mark.parametrize(
    ("predictions", "probabilities", "expected"),
    [
        ([], None, "models x examples"),
        ([[0.5]], None, "classes from 0 to 0"),
        ([[2]], [[[0.5, 0.5]]], "classes from 0 to 1"),
        ([[0]], [[0.5]], r"finite numbers \(1, 1, 'classes'\)"),
        ([[1]], [[[0.5, float("nan")]]], "expected finite numbers"),
    ],
)
def test_votes_of_another_shape_are_refused(predictions, probabilities, expected):
    with pytest.raises(ValueError, match=expected):
        majority_vote(predictions, probabilities)


@golden_cases("ensemble_average")
def test_averages_have_the_golden_values(case):
    found = average(case["inputs"]["scores"])
    np.testing.assert_allclose(found, case["expected"]["mean"], rtol=1e-12, atol=1e-12)


def test_no_model_has_no_average():
    with pytest.raises(ValueError, match="at least one model"):
        average([])


def test_averages_of_float32_are_computed_in_float64():
    scores = np.random.default_rng(0).random((7, 50, 5)).astype(np.float32)
    found = average(scores)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, scores.astype(np.float64).mean(0), rtol=1e-15)
