"""Metrics against scikit-learn and SciPy, the overall score, and scaling by a temperature."""

import math

import numpy as np
import pytest
from golden_files import golden, golden_cases
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats
from scipy.special import softmax
from sklearn import metrics as sklearn

from tasks.calibration import TEMPERATURES, fit_temperature, temperature_scaled
from tasks.metrics import (
    METRICS,
    accuracy,
    f1,
    mae,
    matthews,
    overall,
    overall_score,
    pearson,
    spearman,
    worst_value,
)

GOLDEN = golden("overall_score")


@pytest.mark.parametrize(("classes", "average"), [(2, "binary"), (5, "macro")])
def test_classes_and_numbers_are_measured_as_by_scikit_learn(classes, average):
    targets, predictions = np.random.default_rng(0).integers(0, classes, (2, 57))
    right = sklearn.accuracy_score(targets, predictions)
    assert accuracy(predictions, targets) == pytest.approx(right)
    expected = sklearn.f1_score(targets, predictions, average=average)
    assert f1(predictions, targets, average) == pytest.approx(expected)
    expected = sklearn.matthews_corrcoef(targets, predictions)
    assert matthews(predictions, targets) == pytest.approx(expected)
    assert matthews(np.zeros(57), targets) == 0
    assert mae(predictions, targets) == sklearn.mean_absolute_error(targets, predictions)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_correlations_equal_scipy(seed, dtype):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 83)).astype(dtype)
    y = np.round(y + x, 1)  # with ties
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x.astype(float), y.astype(float))[0])
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y)[0])


@pytest.mark.parametrize("correlation", [pearson, spearman])
@pytest.mark.parametrize("constant", [0.0, 5.0, 0.1])
def test_constant_figures_correlate_by_0(correlation, constant, recwarn):
    flat, rising = np.full(9, constant, np.float32), np.arange(9, dtype=np.float32)
    assert correlation(flat, rising) == 0
    assert correlation(rising, flat) == 0
    assert correlation(flat, flat) == 0
    assert correlation(rising[:1], rising[:1]) == 0
    assert not recwarn.list


@golden_cases("overall_score")
def test_overall_score_equals_the_golden_values(case):
    found, allowed = overall_score(**case["inputs"]), GOLDEN["tolerance"]
    bounds = {"rel_tol": allowed["rtol"], "abs_tol": allowed["atol"]}
    assert math.isclose(found, case["expected"]["overall"], **bounds)
    sst, qqp, sts = case["inputs"].values()
    metrics = {"sst": {"accuracy": sst}, "qqp": {"accuracy": qqp}, "sts": {"pearson": sts}}
    mean = pytest.approx((sst + qqp + sts) / 3)
    assert overall(metrics) == {"overall": found, "overall_plain_mean": mean}
    assert overall({"sst": {"accuracy": sst}}) == {}


def test_errors_are_better_when_smaller():
    assert [name for name in METRICS if math.isinf(worst_value(name))] == ["mae"]
    assert worst_value("overall") == 0


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
