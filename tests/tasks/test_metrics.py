"""Metrics against scikit-learn and SciPy, and the overall score against its golden values."""

import math

import numpy as np
import pytest
from golden_files import golden, golden_cases
from scipy import stats
from sklearn import metrics as sklearn

from tasks.metrics import (
    METRICS,
    accuracy,
    f1,
    mae,
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
