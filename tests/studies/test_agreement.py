"""Measures of predicted and real gains, and their intervals."""

from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from studies.agreement import gain_of_choice, overall_rank, with_interval, within_tasks


def once(pairs):
    return np.ones((1, len(pairs)), dtype=int)


def test_a_choice_is_worth_what_the_highest_third_gains_more_than_the_lowest():
    """Tasks count alike, whatever their numbers of subsets; two subsets are no choice."""
    seven = [(rank, 10 * rank, 0) for rank in range(7)]  # 55 - 5
    three = [(1, 3, 1), (2, 9, 1), (3, 1, 1)]  # 1 - 3
    pairs = np.array([*seven, *three, (1, 100, 2), (2, -100, 2)], dtype=float)
    assert gain_of_choice(pairs, once(pairs)) == pytest.approx((50 - 2) / 2)
    assert np.isnan(gain_of_choice(pairs[-2:], once(pairs[-2:])))


def test_ranks_within_tasks_ignore_differences_between_them():
    pairs = np.array(
        [(1, 10, 0), (2, 11, 0), (3, 12, 0), (7, 1, 1), (8, 2, 1), (9, 3, 1), (0, 5, 2)]
    )
    assert within_tasks(pairs, once(pairs)) == pytest.approx(1)
    assert overall_rank(pairs, once(pairs)) < 0.5
    middle, low, high = with_interval(np.split(pairs, 7), overall_rank)
    assert low < middle < high


def test_of_equal_predictions_the_first_pair_counts_as_the_highest():
    pairs = np.array([(1, 5, 0), (1, 2, 0), (1, -4, 0)], dtype=float)
    assert gain_of_choice(pairs, once(pairs)) == 9
    twice = gain_of_choice(pairs, np.array([[0, 2, 1]]))
    assert twice == 2 - -4


def naive(pairs):
    """Return the three measures of repeated pairs, a task at a time."""
    groups = [pairs[pairs[:, 2] == task] for task in np.unique(pairs[:, 2])]
    groups = [one for one in groups if len(one) > 2]
    if not groups:
        return spearman(pairs), np.nan, np.nan
    third = [one[np.argsort(-one[:, 0], kind="stable"), 1] for one in groups]
    choice = fmean(
        real[: len(real) // 3].mean() - real[-(len(real) // 3) :].mean() for real in third
    )
    return spearman(pairs), fmean(map(spearman, groups)), choice


def spearman(pairs):
    x, y, _ = pairs.T
    return 0.0 if min(np.ptp(x), np.ptp(y)) == 0 else float(spearmanr(x, y).statistic)


@given(st.integers(0, 10**6))
def test_counts_mean_the_same_as_repeated_pairs(seed):
    """Real gains have ties; one prediction of each pair, as in the study."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(3, 20))
    predicted, real = generator.permutation(n), generator.integers(-2, 3, n)
    pairs = np.column_stack([predicted, real, generator.integers(0, 3, n)]).astype(float)
    counts = generator.integers(0, 4, (5, n))
    counts[:, 0] += 1
    measures = overall_rank, within_tasks, gain_of_choice
    found = np.array([measure(pairs, counts) for measure in measures]).T
    expected = [naive(pairs.repeat(draw, 0)) for draw in counts]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
