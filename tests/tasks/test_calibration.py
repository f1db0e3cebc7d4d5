"""Temperature scaling and calibration error against plain loops and the theory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import expit, logit, softmax

from tasks.calibration import (
    BINS,
    TEMPERATURES,
    calibration_error,
    fit_temperature,
    label_decisions,
    scaled,
    temperature_scaled,
)


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


def test_the_calibration_error_is_that_of_a_plain_loop():
    draw = np.random.default_rng(4)
    probabilities = draw.dirichlet(np.full(3, 0.5), size=400)
    probabilities[:4] = [1, 0, 0], [0.2, 0.6, 0.2], [0.2, 0.8, 0], [0.2, 0.2, 0.6]  # on edges
    targets = draw.integers(3, size=400)
    error = 0.0
    for number in range(BINS):
        inside = [
            (max(row), np.argmax(row) == target)
            for row, target in zip(probabilities, targets, strict=True)
            if number < max(row) * BINS <= number + 1
        ]
        if inside:
            confidence, right = zip(*inside, strict=True)
            error += len(inside) / 400 * abs(np.mean(right) - np.mean(confidence))
    assert calibration_error(probabilities, targets) == pytest.approx(error, abs=1e-12)


def test_labels_are_scaled_each_by_itself():
    draw = np.random.default_rng(1)
    found = logits(draw, 2000, 4) - 1
    scores = expit(2 * found).astype(np.float32)  # far too sure
    targets = draw.random(found.shape) < expit(found)
    temperature = fit_temperature(label_decisions(scores), targets.reshape(-1))
    assert temperature == pytest.approx(2, rel=0.1)
    changed = scaled(scores, temperature, labels=True)
    assert (changed.dtype, changed.shape) == (scores.dtype, scores.shape)
    expected = expit(logit(scores.astype(np.float64)) / temperature)
    np.testing.assert_allclose(changed, expected, rtol=1e-6)
    np.testing.assert_array_equal(changed > 0.5, scores > 0.5)
