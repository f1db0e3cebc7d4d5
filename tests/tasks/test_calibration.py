"""Temperature scaling, calibration error and conformal sets against plain loops and the theory."""

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import expit, log_softmax, logit, softmax
from scipy.stats import binom

from tasks.calibration import (
    BINS,
    CLASSES,
    FEWEST_OF_LABEL,
    LABELS,
    NUMBERS,
    TEMPERATURES,
    best_thresholds,
    conformal_quantile,
    fewest_scores,
    fit_temperature,
    reliability,
    report,
    temperature_scaled,
)

RARE = 1e-6  # probability with which a sound count is outside of its bounds
ROUNDED = 1e-12  # float64 ends of an interval of a few units


def drawn_classes(draw, probabilities):
    """Return a class for each row of probabilities (n, C)."""
    below = probabilities.cumsum(1) < draw.random((len(probabilities), 1))
    return np.minimum(below.sum(1), probabilities.shape[1] - 1)


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
@pytest.mark.parametrize("temperature", [0.4, 1.0, 2.5])
def test_the_temperature_of_the_labels_is_recovered(seed, temperature):
    """Within five standard errors of the maximum-likelihood estimate of 1 / T."""
    draw = np.random.default_rng(seed)
    found = logits(draw, 4000, 5)
    true = softmax(found / temperature, 1)
    inverse = 1 / fit_temperature(softmax(found, 1), drawn_classes(draw, true))
    spread = (true * found**2).sum(1) - (true * found).sum(1) ** 2  # Fisher information of 1 / T
    assert abs(inverse - 1 / temperature) < 5 / np.sqrt(spread.sum())


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


def test_without_an_error_the_temperature_is_1():
    probabilities = np.array([[0.7, 0.3], [0.4, 0.6]])
    assert fit_temperature(probabilities, np.array([0, 1])) == 1
    assert fit_temperature(probabilities, np.array([1, 0])) == pytest.approx(TEMPERATURES[1], 1e-3)


def test_probabilities_that_are_rounded_to_0_have_a_temperature():
    probabilities = np.array([[1, 0], [1, 0], [1, 0], [1, 0]], np.float32)
    temperature = fit_temperature(probabilities, np.array([0, 0, 0, 1]))
    assert TEMPERATURES[0] < temperature <= TEMPERATURES[1]
    assert np.isfinite(temperature_scaled(probabilities, temperature)).all()


@pytest.mark.parametrize("bins", [1, 4, BINS])
def test_the_calibration_error_is_that_of_a_plain_loop(bins):
    draw = np.random.default_rng(bins)
    probabilities = draw.dirichlet(np.full(3, 0.5), size=400)
    probabilities[:4] = [1, 0, 0], [0.25, 0.5, 0.25], [0.25, 0.75, 0], [0.2, 0.2, 0.6]
    targets = draw.integers(3, size=400)
    error = 0.0
    for number in range(bins):
        inside = [
            (max(row), np.argmax(row) == target)
            for row, target in zip(probabilities, targets, strict=True)
            if number < max(row) * bins <= number + 1
        ]
        if inside:
            confidence, right = zip(*inside, strict=True)
            error += len(inside) / 400 * abs(np.mean(right) - np.mean(confidence))
    table = reliability(probabilities, targets, bins)
    assert table.counts.sum() == 400
    assert table.error == pytest.approx(error, abs=1e-12)


def test_calibrated_probabilities_have_no_error_and_certain_errors_all_of_it():
    right = np.array([0, 0, 0, 1])
    assert reliability(np.full((4, 2), [0.75, 0.25]), right).error == pytest.approx(0)
    assert reliability(np.full((4, 2), [1.0, 0.0]), np.ones(4)).error == 1


@pytest.mark.parametrize("coverage", [0.07, 0.5, 0.9, 0.95, 0.99])
def test_the_quantile_is_the_finite_sample_one(coverage):
    fewest = fewest_scores(coverage)
    for count in (fewest, fewest + 1, 2 * fewest + 7):
        scores = np.random.default_rng(count).permutation(count) + 1.0
        below = [n for n in range(1, count + 1) if n >= (count + 1) * coverage - 1e-9]
        assert conformal_quantile(scores, coverage) == below[0]
    with pytest.raises(ValueError, match=f"expected {fewest} .* or more, found {fewest - 1}"):
        conformal_quantile(np.zeros(fewest - 1), coverage)


def example_of_classes(draw, count):
    """Probabilities that are far too sure, and classes."""
    found = logits(draw, count, 4)
    return softmax(3 * found, 1).astype(np.float32), drawn_classes(draw, softmax(found, 1))


def example_of_labels(draw, count):
    """Probabilities and labels; some examples have none."""
    found = logits(draw, count, 4) - 1
    return expit(2 * found).astype(np.float32), draw.random(found.shape) < expit(found)


def example_of_numbers(draw, count):
    values = draw.normal(size=count)
    return values.astype(np.float32), values + draw.standard_t(3, size=count)


EXAMPLES = [
    (CLASSES, example_of_classes),
    (LABELS, example_of_labels),
    (NUMBERS, example_of_numbers),
]


@pytest.mark.parametrize("coverage", [0.8, 0.9])
@pytest.mark.parametrize(("calibrator", "examples"), EXAMPLES)
def test_new_examples_are_covered_as_often_as_promised(calibrator, examples, coverage):
    """One new example of each of many calibrations: their number is binomial.

    Without ties, it is covered with the probability k / (n + 1), k = ceil((n + 1) coverage).
    """
    trials, count, covered = 3000, 29, 0
    for seed in range(trials):
        scores, targets = examples(np.random.default_rng(seed), count + 1)
        fit = calibrator.nonconformity(scores, targets)
        covered += fit[-1] <= conformal_quantile(fit[:-1], coverage)
    share = ceil((count + 1) * coverage - 1e-9) / (count + 1)
    assert covered >= binom.ppf(RARE, trials, share)
    if calibrator is not LABELS:  # without ties
        assert covered <= binom.ppf(1 - RARE, trials, share)


@pytest.mark.parametrize(("calibrator", "examples"), EXAMPLES)
def test_a_region_holds_what_fits_at_least_as_well_as_the_quantile(calibrator, examples):
    scores, targets = examples(np.random.default_rng(0), 300)
    fit = calibrator.nonconformity(scores, targets)
    quantile = conformal_quantile(fit, 0.7)
    region = calibrator.region(scores, quantile)
    for row, (target, inside) in enumerate(zip(targets, region, strict=True)):
        if calibrator is NUMBERS:
            held = inside[0] <= target <= inside[1]
        elif calibrator is CLASSES:
            held = inside[target]
        else:
            held = all(inside[target])
        at_the_end = abs(fit[row] - quantile) < ROUNDED
        assert at_the_end or held == (fit[row] <= quantile)
    assert 0.7 <= np.mean(fit <= quantile) < 0.71


def test_labels_are_scaled_each_by_itself():
    scores, targets = example_of_labels(np.random.default_rng(1), 2000)
    fitted = LABELS.fit(scores, targets)
    assert fitted.temperature == pytest.approx(2, rel=0.1)
    scaled = LABELS.scaled(scores, fitted.temperature)
    assert (scaled.dtype, scaled.shape) == (scores.dtype, scores.shape)
    expected = expit(logit(scores.astype(np.float64)) / fitted.temperature)
    np.testing.assert_allclose(scaled, expected, rtol=1e-6)
    assert LABELS.reliability(scores, targets, fitted.temperature).counts.sum() == targets.size
    np.testing.assert_array_equal(scaled > 0.5, scores > 0.5)


def test_scaling_makes_sure_classes_less_wrong_and_leaves_numbers():
    scores, targets = example_of_classes(np.random.default_rng(2), 3000)
    fitted = CLASSES.fit(scores[:1000], targets[:1000])
    before, after = (CLASSES.reliability(scores[1000:], targets[1000:], t) for t in (1, 3.0))
    found = CLASSES.reliability(scores[1000:], targets[1000:], fitted.temperature)
    assert fitted.temperature == pytest.approx(3, rel=0.15)
    assert found.error < before.error / 5
    assert found.error == pytest.approx(after.error, abs=0.02)
    np.testing.assert_allclose(
        log_softmax(np.log(CLASSES.scaled(scores, 2.0).astype(np.float64)), 1),
        log_softmax(np.log(np.maximum(scores.astype(np.float64), 1e-37)) / 2, 1),
        rtol=1e-4,
        atol=1e-5,
    )
    values, numbers = example_of_numbers(np.random.default_rng(3), 40)
    fitted = NUMBERS.fit(values, numbers)
    assert fitted.temperature is None
    assert NUMBERS.scaled(values, None) is values
    assert (np.diff(fitted.nonconformity) >= 0).all()


@pytest.mark.parametrize("seed", range(20))
def test_thresholds_have_the_highest_f1_of_all(seed):
    draw = np.random.default_rng(seed)
    targets = (draw.random((60, 3)) < [0.5, 0.2, 0.03]).astype(np.float32)
    found = np.clip(0.4 * targets + draw.random((60, 3)) * 0.6, 0, 1).astype(np.float32).round(2)
    thresholds = best_thresholds(found, targets)
    for label, threshold in enumerate(thresholds):
        if targets[:, label].sum() < FEWEST_OF_LABEL:
            assert threshold == 0.5
            continue
        scores = {}
        for cut in [*np.unique(found[:, label]) - 0.001, threshold]:
            chosen = found[:, label] > cut
            right = (chosen * targets[:, label]).sum()
            scores[cut] = 2 * right / (chosen.sum() + targets[:, label].sum())
        assert scores[threshold] == pytest.approx(max(scores.values()))


@pytest.mark.parametrize(("calibrator", "examples"), EXAMPLES)
def test_a_report_counts_held_targets_and_sizes_of_regions(calibrator, examples):
    scores, targets = examples(np.random.default_rng(5), 400)
    fitted = calibrator.fit(scores[:200], targets[:200])
    scores, targets = scores[200:], targets[200:]
    found = report(calibrator, fitted, scores, targets, 0.8)
    assert (found["calibration_examples"], found["scored_examples"]) == (200, 200)
    held, size = 0, 0.0
    quantile = conformal_quantile(fitted.nonconformity, 0.8)
    for target, inside in zip(targets, calibrator.region(scores, quantile), strict=True):
        if calibrator is NUMBERS:
            held, size = held + (inside[0] <= target <= inside[1]), size + inside[1] - inside[0]
        else:
            held, size = held + np.all(inside[target]), size + sum(map(int, inside))
    assert found["coverage"] == pytest.approx(held / 200, abs=1 / 200)
    key = "mean_width" if calibrator is NUMBERS else "mean_set_size"
    assert found[key] == pytest.approx(size / 200, rel=1e-6)


def test_labels_above_their_thresholds_are_reported_beside_those_above_one_half():
    targets = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6, np.float32)
    scores = np.array([[0.3, 0.1]] * 6 + [[0.1, 0.9]] * 6, np.float32)
    fitted = LABELS.fit(scores, targets)
    assert fitted.thresholds == pytest.approx([0.2, 0.5])
    found = report(LABELS, fitted, scores, targets, 0.9)
    assert found["micro_f1_at_thresholds"] == 1
    assert found["micro_f1_at_half"] == pytest.approx(2 * 6 / (6 + 12))
    assert CLASSES.fit(scores, np.array([0] * 6 + [1] * 6)).thresholds is None
