"""Temperature scaling against the theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import softmax

from tasks.calibration import TEMPERATURES, fit_temperature, temperature_scaled


def logits(draw, count, classes):
    return 2 * draw.normal(size=(count, classes))


@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_scaled_probabilities_are_those_of_the_divided_logits(temperature):
    found = logits(np.random.default_rng(0), 50, 4)
    scaled = temperature_scaled(softmax(found, 1), temperature)
    np.testing.assert_allclose(scaled, softmax(found / temperature, 1), rtol=1e-12)


@given(
    arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 6), st.integers(2, 5)),
        elements=st.floats(0, 1, width=32),
    ),
    st.floats(*TEMPERATURES),
)
def test_scaling_never_changes_the_largest_probability(found, temperature):
    found[:, 0] = np.maximum(found[:, 0], np.float32(0.25))  # a row of softmax is never 0
    np.testing.assert_array_equal(temperature_scaled(found, temperature).argmax(1), found.argmax(1))


@pytest.mark.parametrize("seed", range(5))
def test_no_temperature_of_a_grid_has_a_better_likelihood(seed):
    draw = np.random.default_rng(seed)
    probabilities = softmax(logits(draw, 60, 3), 1)
    targets = draw.integers(3, size=60)

    def loss(temperature):
        scaled = temperature_scaled(probabilities, temperature)
        return -sum(np.log(row[target]) for row, target in zip(scaled, targets, strict=True))

    best = loss(fit_temperature(probabilities, targets))
    assert all(best <= loss(one) + 1e-6 for one in np.geomspace(*TEMPERATURES, 200))


def test_temperatures_of_probabilities_without_an_error_and_of_those_rounded_to_0():
    probabilities = np.array([[0.7, 0.3], [0.4, 0.6]])
    assert fit_temperature(probabilities, np.array([0, 1])) == 1
    assert fit_temperature(probabilities, np.array([1, 0])) == pytest.approx(TEMPERATURES[1], 1e-3)
    rounded = np.array([[1, 0], [1, 0], [1, 0], [1, 0]], np.float32)
    temperature = fit_temperature(rounded, np.array([0, 0, 0, 1]))
    assert TEMPERATURES[0] < temperature <= TEMPERATURES[1]
    assert np.isfinite(temperature_scaled(rounded, temperature)).all()
