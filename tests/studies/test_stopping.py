"""Verdicts of comparisons: signs, margins, examples, budgets, and their error rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies.until_sure.confidence import mean_interval
from studies.until_sure.stopping import (
    A_BETTER,
    B_BETTER,
    ERROR,
    OF_SEEDS,
    OPEN,
    QUANTILE,
    SMALL,
    Rule,
    conclude,
    example_halves,
    look,
)

FIXED = Rule(margin=1.0, examples="fixed")
SAMPLED = Rule(margin=1.0)
CLEAR = [10.0, 10.4, 9.7, 10.1, 10.2]


def of(differences, rule=FIXED, covariance=None, seconds=1.0):
    n = len(differences)
    if covariance is None:
        covariance = np.zeros((n, n))
    return conclude(differences, covariance, [seconds] * n, rule)


def test_a_clear_difference_ends_at_the_third_pair():
    found = of(CLEAR)
    assert (found.verdict, found.reason, len(found.looks)) == (A_BETTER, "settled", 1)
    assert of([-x for x in CLEAR]).verdict == B_BETTER


def test_no_difference_ends_below_the_margin():
    found = of([0.01, -0.02, 0.015, 0.005])
    assert (found.verdict, found.reason) == (SMALL, "settled")


def test_two_pairs_settle_nothing():
    found = of(CLEAR[:2])
    assert found == type(found)((), OPEN, None)


def test_a_wide_spread_is_open():
    found = of([3.0, -2.0, 1.0, 0.5])
    assert (found.verdict, found.reason, len(found.looks)) == (OPEN, None, 2)


def test_the_last_seed_and_the_budget_end_it():
    wide = [3.0, -2.0, 1.0, 0.5]
    assert of(wide, Rule(1.0, "fixed", most_seeds=4)).reason == "most seeds"
    # 4 pairs of 10 seconds; a fifth needs 50.
    assert of(wide, Rule(1.0, "fixed", budget=50), seconds=10).reason is None
    assert of(wide, Rule(1.0, "fixed", budget=49), seconds=10).reason == "budget"
    assert of(CLEAR, Rule(1.0, "fixed", budget=1), seconds=10).reason == "settled"


# Examples


def test_other_examples_widen_the_interval_on_both_sides():
    covariance = np.full((5, 5), 0.5)
    found = look(CLEAR, covariance, SAMPLED)
    half = QUANTILE * 0.5**0.5
    assert found.half == pytest.approx(half)
    assert found.seeds == mean_interval(CLEAR, OF_SEEDS)
    assert found.interval == pytest.approx((found.seeds[0] - half, found.seeds[1] + half))
    fixed = look(CLEAR, covariance, FIXED)
    assert (fixed.half, fixed.interval) == (0, mean_interval(CLEAR, ERROR))


def test_the_noise_of_seeds_is_not_in_what_remains_of_examples():
    """Differences of an example: a part common to all seeds, and one of each seed."""
    rng = np.random.default_rng(0)
    n, examples = 8, 20_000
    common, own = rng.normal(0, 2, examples), rng.normal(0, 3, (n, examples))
    whole, least = example_halves(np.cov(common + own) / examples)
    assert least == pytest.approx(QUANTILE * 2 / examples**0.5, rel=0.03)
    assert whole == pytest.approx(QUANTILE * (4 + 9 / n) ** 0.5 / examples**0.5, rel=0.03)


def test_a_dev_set_that_is_too_small_ends_it_without_a_verdict():
    covariance = np.full((5, 5), 4.0)  # +- 5.2 for endless seeds
    found = of([0.5, 0.6, 0.4, 0.5, 0.55], SAMPLED, covariance)
    assert (found.verdict, found.reason) == (OPEN, "few examples")
    # Noise of single seeds, which more of them reduce, is no reason to give up.
    assert of([0.5, 0.6, 0.4, 0.5, 0.55], SAMPLED, np.diag([20.0] * 5)).reason is None
    assert of(CLEAR, SAMPLED, covariance).verdict == A_BETTER


@given(
    st.lists(st.integers(-80, 80).map(lambda n: n / 8), min_size=3, max_size=10),
    st.floats(0.1, 5),
    st.floats(0, 2),
)
def test_swapping_a_and_b_swaps_the_verdict(differences, margin, variance):
    n = len(differences)
    covariance = np.full((n, n), variance)
    other = {A_BETTER: B_BETTER, B_BETTER: A_BETTER}
    for examples in ("fixed", "sampled"):
        rule = Rule(margin, examples)
        one = conclude(differences, covariance, [1.0] * n, rule)
        two = conclude([-x for x in differences], covariance, [1.0] * n, rule)
        assert two.verdict == other.get(one.verdict, one.verdict)
        assert (two.reason, len(two.looks)) == (one.reason, len(one.looks))


@given(
    st.lists(st.integers(-80, 80).map(lambda n: n / 8), min_size=3, max_size=10),
    st.sampled_from([0.25, 8.0]),
)
def test_the_unit_of_the_score_changes_no_verdict(differences, unit):
    n = len(differences)
    covariance = np.full((n, n), 0.3)
    one = conclude(differences, covariance, [1.0] * n, Rule(1.0, resolution=0.2))
    rule = Rule(unit, resolution=0.2 * unit)
    scaled = [x * unit for x in differences]
    assert conclude(scaled, covariance * unit**2, [1.0] * n, rule).verdict == one.verdict


def test_coins_of_one_example_have_few_verdicts():
    """Differences of exactly one dev example up or down: equal ones have no deviation."""
    rng = np.random.default_rng(1)
    rule = Rule(margin=0.01, examples="fixed", resolution=1.0, most_seeds=20)
    draws = rng.choice([-1.0, 1.0], (600, 20))
    wrong = [of(row, rule).verdict in (A_BETTER, B_BETTER) for row in draws.tolist()]
    assert 0 < np.mean(wrong) <= ERROR
