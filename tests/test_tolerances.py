"""The bound on rounding holds for the worst order of a sum and detects a missing term."""

import numpy as np
import pytest
from tolerances import assert_near, assert_near_in_norm


@pytest.mark.parametrize("terms", [2, 30, 1000, 100_000])
def test_sums_one_term_after_the_other_are_within_the_bound(terms):
    numbers = np.random.default_rng(0).normal(size=(terms, 200)).astype(np.float32)
    exact, magnitude = numbers.sum(0, dtype=np.float64), np.abs(numbers).sum(0).max()
    found = np.cumsum(numbers, axis=0, dtype=np.float32)[-1]
    assert_near(found, exact, terms, magnitude)
    assert_near_in_norm(found, exact, terms)
    for assertion in (assert_near, assert_near_in_norm):
        with pytest.raises(AssertionError):
            assertion(found - numbers[0], exact, terms)


@pytest.mark.parametrize("assertion", [assert_near, assert_near_in_norm])
@pytest.mark.parametrize("found", [[np.nan, 1.0], [1.0], [1.0, 1.001]])
def test_nan_other_shapes_and_large_differences_fail(assertion, found):
    with pytest.raises(AssertionError):
        assertion(found, [1.0, 1.0], 10)
    with pytest.raises(AssertionError):
        assertion([np.nan, 1.0], [np.nan, 1.0], 10, 1.0)
