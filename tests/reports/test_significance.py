"""Tests and intervals beside scipy's and statsmodels', on random data."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import bootstrap, rankdata, wilcoxon
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar
from statsmodels.stats.multitest import multipletests

from reports.significance import holm, mcnemar, paired_bootstrap, signed_rank
from tasks.metrics import pearson


@pytest.mark.parametrize("seed", range(20))
def test_mcnemar(seed):
    draw = np.random.default_rng(seed)
    first, second = draw.random((2, 60)) < draw.random((2, 1))
    table = [
        [(first & second).sum(), (first & ~second).sum()],
        [(~first & second).sum(), (~first & ~second).sum()],
    ]
    assert mcnemar(first, second) == pytest.approx(their_mcnemar(table, exact=True).pvalue)
    order = draw.permutation(60)
    assert mcnemar(first[order], second[order]) == mcnemar(first, second)
    assert mcnemar(second, first) == pytest.approx(mcnemar(first, second))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [6, 9, 30])
def test_signed_rank(seed, count):
    draw = np.random.default_rng(seed)
    values = draw.normal(0.3, 1, size=count)
    assert signed_rank(values) == pytest.approx(wilcoxon(values).pvalue)
    assert signed_rank(draw.permutation(values)) == pytest.approx(signed_rank(values))


def test_signed_rank_is_exact_with_many_equal_scores():
    values = np.array([0.01, 0.02, 0.03, 0.04, -0.05])
    for zeros in (5, 9, 20):
        ranks = rankdata(np.abs([0.0] * zeros + [*values]))[zeros:]
        sums = [ranks[np.array(signs)].sum() for signs in product((False, True), repeat=5)]
        chance = np.mean(np.array(sums) <= ranks[values < 0].sum())
        found = signed_rank([0.0] * zeros + [*values])
        assert found == pytest.approx(min(1, 2 * chance))
        assert signed_rank([0.0] * zeros + [0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(2 / 2**5)


def test_samples_without_differences_or_too_few():
    right = np.array([True, False, True])
    assert mcnemar(right, right) == 1.0
    assert signed_rank([1.0] * 5) is None
    assert signed_rank([0.0] * 8) == 1.0
    assert signed_rank([0.1, float("nan")] * 5) is None
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert holm([]) == []


def test_equal_differences_of_accuracies_are_ties():
    right = np.array([727, 292, 296, 231, 230, 656, 337, 671, 530])
    more = np.array([4, 1, 3, 3, -2, 1, 1, 0, 1])
    differences = [(a + b) / 872 - a / 872 for a, b in zip(right, more, strict=True)]
    expected = wilcoxon(more.astype(float), zero_method="pratt").pvalue
    assert signed_rank(differences) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_holm(seed):
    draw = np.random.default_rng(seed)
    values = draw.random(7).round(1) ** 3
    _, expected, _, _ = multipletests(values, method="holm")
    np.testing.assert_allclose(holm(values.tolist()), expected)


@pytest.fixture
def scores():
    draw = np.random.default_rng(0)
    targets = draw.normal(size=300)
    first, second = targets + draw.normal(size=(2, 300)) * [[0.7], [1.0]]
    return targets, first, second


def difference(targets, first, second):
    return lambda rows: pearson(first[rows], targets[rows]) - pearson(second[rows], targets[rows])


def test_the_bootstrap_interval_and_the_order_of_the_examples(scores):
    ids = np.array([f"x{i}" for i in range(300)])
    found = paired_bootstrap(difference(*scores), ids)
    settings = {"vectorized": False, "method": "percentile", "n_resamples": 2000, "rng": 1}
    expected = bootstrap((np.arange(300),), difference(*scores), **settings).confidence_interval
    interval = np.quantile(found, [0.025, 0.975])
    np.testing.assert_allclose(interval, expected, atol=0.012)  # both are of 2,000 random samples
    order = np.random.default_rng(1).permutation(300)
    moved = paired_bootstrap(difference(*(one[order] for one in scores)), ids[order])
    np.testing.assert_allclose(moved, found, rtol=1e-9)
