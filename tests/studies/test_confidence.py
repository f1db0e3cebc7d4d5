"""The confidence sequence: its closed form, its symmetries, and its error over all looks."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.stats import norm

from studies.until_sure.confidence import FEWEST, PRECISION, half_width, mean_interval

ALPHAS = (0.01, 0.04, 0.05, 0.2)
differences = st.lists(st.integers(-1000, 1000).map(lambda n: n / 8), min_size=3, max_size=12)
spread = differences.filter(lambda x: np.ptp(x) > 0.5)
DRAWN = np.random.default_rng(0).normal(0.7, 1.3, 12)


def log_martingale(x: np.ndarray | list[float], mean: float, k: float = PRECISION) -> float:
    """Log G_n(m) of differences x (n,), which are not all equal to the candidate `mean`."""
    x = np.asarray(x, np.float64) - mean
    n, total, squares = len(x), float(x.sum()), float((x * x).sum())
    whole = (n + k) * squares
    return 0.5 * math.log(k / (n + k)) - 0.5 * n * math.log1p(-total * total / whole)


def integrated(x: np.ndarray, k: float) -> float:
    """The martingale as the quotient of two mixtures of normal likelihoods, by trapezoids."""
    log_sigma = np.linspace(-6, 12, 1201)[:, None]  # d sigma / sigma = d log sigma
    sigma = np.exp(log_sigma)
    effect = np.linspace(-9, 9, 1201)[None] / math.sqrt(k)

    def likelihood(effect: np.ndarray) -> np.ndarray:
        each = [norm.logpdf(one, effect * sigma, sigma) for one in x]
        return np.exp(np.sum(each, axis=0))

    over_effects = trapezoid(likelihood(effect) * norm.pdf(effect, 0, k**-0.5), effect, axis=1)
    mixed = trapezoid(over_effects, log_sigma[:, 0])
    return float(mixed / trapezoid(likelihood(np.zeros((1, 1)))[:, 0], log_sigma[:, 0]))


@pytest.mark.parametrize("k", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("mean", [0.0, 0.9])
@pytest.mark.parametrize("n", [2, 3, 6])
def test_the_martingale_is_the_quotient_of_the_mixtures(n, mean, k):
    found = math.exp(log_martingale(DRAWN[:n], mean, k))
    assert found == pytest.approx(integrated(DRAWN[:n] - mean, k), rel=1e-4)


@pytest.mark.parametrize("x", [-3.0, 0.1, 400.0])
def test_it_begins_with_one(x):
    assert log_martingale([x], 0.0) == pytest.approx(0, abs=1e-12)


def test_its_mean_stays_one_without_a_difference():
    """E[G_{n+1} | the first n] = G_n for scaled differences; here by quadrature for n = 1."""
    k = 0.5
    # x_2 / x_1 of two normal numbers has a Cauchy distribution.
    mean, _ = quad(
        lambda r: math.exp(log_martingale([1.0, r], 0.0, k)) / (math.pi * (1 + r * r)),
        -math.inf,
        math.inf,
        limit=500,
    )
    assert mean == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [3, 4, 8, 12])
def test_the_ends_are_where_the_martingale_reaches_its_bound(n, alpha):
    ends = mean_interval(DRAWN[:n], alpha)
    for end in ends:
        if math.isfinite(end):
            assert log_martingale(DRAWN[:n], end) == pytest.approx(-math.log(alpha), abs=1e-9)
    inner = np.linspace(*np.clip(ends, -50, 50), 101)[1:-1]
    assert all(log_martingale(DRAWN[:n], m) < -math.log(alpha) for m in inner)


def test_golden_widths():
    found = [half_width(n, 1.0, 0.05) for n in (2, 3, 5, 10, 20)]
    assert found == pytest.approx([math.inf, 5.966047, 2.530318, 1.383509, 0.885047], abs=1e-5)
    assert math.isinf(half_width(1, 1.0, 0.05))
    assert mean_interval([1.0], 0.05) == (-math.inf, math.inf)


@pytest.mark.parametrize("alpha", [0.04, 0.05])
def test_the_first_bounded_interval_is_that_of_three(alpha):
    widths = [half_width(n, 1.0, alpha) for n in range(2, 100)]
    assert math.isinf(widths[FEWEST - 3])
    assert all(map(math.isfinite, widths[FEWEST - 2 :]))
    assert widths == sorted(widths, reverse=True)


def test_no_other_prior_has_much_shorter_intervals():
    """What the comment on `PRECISION` says."""
    others = np.geomspace(0.002, 0.3, 60)
    for n, share in ((3, 1.03), (4, 1.03), (5, 1.07), (10, 1.12)):
        best = min(half_width(n, 1.0, 0.05, k) for k in others)
        assert half_width(n, 1.0, 0.05, PRECISION) <= share * best


# Symmetries


@given(spread, st.sampled_from(ALPHAS), st.sampled_from([0.125, 0.5, 4.0, 100.0]))
def test_the_unit_of_the_scores_changes_nothing(x, alpha, unit):
    low, high = mean_interval(x, alpha)
    scaled = mean_interval(np.array(x) * unit, alpha)
    assert scaled == pytest.approx((low * unit, high * unit), rel=1e-9)


@given(spread, st.sampled_from(ALPHAS), st.integers(-50, 50))
def test_a_shift_moves_the_interval(x, alpha, shift):
    low, high = mean_interval(x, alpha)
    moved = mean_interval(np.array(x) + shift, alpha)
    assert moved == pytest.approx((low + shift, high + shift), rel=1e-9, abs=1e-9)


@given(spread, st.sampled_from(ALPHAS))
def test_swapping_a_and_b_turns_the_interval(x, alpha):
    low, high = mean_interval(x, alpha)
    assert mean_interval([-one for one in x], alpha) == (-high, -low)


@given(spread, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(x, random):
    shuffled = list(x)
    random.shuffle(shuffled)
    assert mean_interval(shuffled, 0.05) == pytest.approx(mean_interval(x, 0.05), rel=1e-9)


@given(spread)
def test_intervals_of_higher_levels_contain_those_of_lower_ones(x):
    ends = [mean_interval(x, alpha) for alpha in sorted(ALPHAS)]
    for (low, high), (inner_low, inner_high) in pairwise(ends):
        assert low <= inner_low <= inner_high <= high


@given(spread, st.sampled_from([0.01, 1.0, 1e4]))
def test_a_smallest_deviation_only_widens(x, smallest):
    low, high = mean_interval(x, 0.05)
    wide_low, wide_high = mean_interval(x, 0.05, smallest)
    assert wide_low <= low <= high <= wide_high


def test_equal_differences_have_the_smallest_deviation():
    low, high = mean_interval([1.0, 1.0, 1.0], 0.05, smallest=0.5)
    assert (low + high) / 2 == 1
    assert high - low == pytest.approx(2 * half_width(3, 0.5, 0.05))
    assert mean_interval([1.0, 1.0, 1.0], 0.05) == (1, 1)


# Error over all looks


def deviations_of(x: np.ndarray) -> np.ndarray:
    """The standard deviations of the first 1, 2, ... differences of each row: (S, n)."""
    n = np.arange(1, x.shape[1] + 1)
    squares = (x**2).cumsum(1) - x.cumsum(1) ** 2 / n
    return np.sqrt(np.maximum(squares, 0) / np.maximum(n - 1, 1))


def missed(x: np.ndarray, alpha: float) -> np.ndarray:
    """Whether the interval of any look at rows of differences (S, n) misses 0: (S,)."""
    n = np.arange(1, x.shape[1] + 1)
    means = x.cumsum(1) / n
    deviations = deviations_of(x)
    widths = np.array([half_width(int(one), 1.0, alpha) for one in n[FEWEST - 1 :]])
    return (np.abs(means[:, FEWEST - 1 :]) > widths * deviations[:, FEWEST - 1 :]).any(1)


@pytest.mark.parametrize("alpha", [0.05, 0.2])
@pytest.mark.parametrize("sigma", [1.0, 30.0])
def test_at_most_alpha_of_sequences_ever_miss_the_mean(alpha, sigma):
    draws = np.random.default_rng(5).normal(0, sigma, (4000, 200))
    share = missed(draws, alpha).mean()
    assert share <= alpha
    assert share >= alpha / 5  # the bound is not a loose one


def test_a_t_test_after_each_pair_errs_far_more_often():
    from scipy.stats import t

    x = np.random.default_rng(6).normal(0, 1, (1000, 30))
    n = np.arange(1, 31)
    means, deviations = x.cumsum(1) / n, deviations_of(x)
    width = t.ppf(0.975, np.maximum(n - 1, 1)) / np.sqrt(n)
    wrong = (np.abs(means) > width * deviations)[:, FEWEST - 1 :].any(1)
    assert wrong.mean() > 0.15
