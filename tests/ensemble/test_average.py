"""Averages: golden values, shapes."""

import json
from pathlib import Path

import numpy as np
import pytest

from ensemble import average

GOLDEN = Path(__file__).parents[1] / "golden" / "ensemble_average.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_golden_values(case):
    found = average(case["inputs"]["scores"])
    np.testing.assert_allclose(found, case["expected"]["mean"], rtol=1e-12, atol=1e-12)


def test_float32_is_added_up_in_float64():
    scores = np.random.default_rng(0).random((7, 50, 5)).astype(np.float32)
    found = average(scores)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, scores.astype(np.float64).mean(0), rtol=1e-15)


@pytest.mark.parametrize("scores", [[], [[1.0, 2.0], [1.0]]])
def test_what_does_not_fit_is_refused(scores):
    with pytest.raises(ValueError, match="one shape for all models"):
        average(scores)
