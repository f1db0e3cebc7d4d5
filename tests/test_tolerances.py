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
