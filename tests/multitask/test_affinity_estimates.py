"""Estimates of affinity as functions of arrays: cosines, look-ahead, linear fits, groups."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq

from multitask.affinity.estimators import (
    ESTIMATORS,
    SHARE,
    PairMeans,
    bootstrap_weights,
    intervals,
    look_ahead,
    widening,
)
from multitask.affinity.groups import (
    Group,
    clustered_groupings,
    exact_groupings,
    linkage_of,
    random_subsets,
    subset_means,
    subsets_of,
)
from multitask.affinity.linear_fits import RADII, LinearFits, LinearPoint, ridges_of
from multitask.affinity.measures import Measures
from multitask.gram_matrices import cosines_of

PAIRS = np.array([(0, 1), (0, 2), (1, 2)])
EXACTLY = {"rtol": 1e-9, "atol": 1e-12}  # float64 sums of at most a few hundred terms


# Cosines and look-ahead


def test_cosines_of_equal_opposite_orthogonal_and_zero_gradients():
    rows = np.array([[2.0, 0], [5, 0], [-1, 0], [0, 3], [0, 0]])
    found = cosines_of((rows @ rows.T)[None, None])[0, 0]
    assert found[0].tolist() == [1, 1, -1, 0, 0]
    assert found[4].tolist() == [0] * 5


def test_cosines_do_not_depend_on_the_size_of_a_tasks_gradient(rng):
    rows = rng.normal(size=(4, 10))
    scaled = rows * np.array([[1], [10], [0.1], [3]])
    np.testing.assert_allclose(cosines_of(rows @ rows.T), cosines_of(scaled @ scaled.T), **EXACTLY)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_look_ahead_of_quadratic_losses_has_its_closed_form(rng):
    """Of L_j = |A_j (x - c_j)|^2 / 2, a step also has the effect a^2 |A_j g_i|^2 / 2 on L_j."""
    tasks = 3
    matrices, centres = rng.normal(size=(tasks, 4, 4)), rng.normal(size=(tasks, 4))
    x = rng.normal(size=4)

    def loss(j, at):
        return ((matrices[j] @ (at - centres[j])) ** 2).sum() / 2

    gradients = np.array([m.T @ m @ (x - c) for m, c in zip(matrices, centres, strict=True)])
    before = np.array([loss(j, x) for j in range(tasks)])
    rate = SHARE * before.sum() / (gradients**2).sum()
    after = np.array([[loss(j, x - rate * g) for j in range(tasks)] for g in gradients])
    bends = [[(rate * m @ g) @ (rate * m @ g) / 2 for m in matrices] for g in gradients]
    parts = np.stack([one @ one.T for one in (gradients[:, :1], gradients[:, 1:])])
    found = look_ahead(before[None], parts[None])[0]
    np.testing.assert_allclose(found, 1 - (after - bends) / before, **EXACTLY)
    assert found.diagonal() @ before == pytest.approx(SHARE * before.sum())


def test_the_estimator_adds_the_parts_and_divides_by_the_loss_of_the_other_task():
    losses, parts = np.array([[1.0, 4.0]] * 2), np.array([[[3, 1], [1, 2]], [[0, 3], [3, 5]]])
    measures = Measures(losses, np.stack([parts] * 2), np.zeros((2, 2, 1)), ("a", "b"), 1.0)
    rate = SHARE * 5 / 10  # of the losses and the squares of the gradients
    found = ESTIMATORS["lookahead"].make([measures]).gains(np.array([[0, 1]]))
    np.testing.assert_allclose(found, [[rate * 4 / 1, rate * 4 / 4]], **EXACTLY)


def test_look_ahead_without_any_gradient_is_zero():
    assert not look_ahead(np.ones((1, 2)), np.zeros((1, 3, 2, 2))).any()


def test_the_gain_in_a_subset_is_the_mean_effect_of_the_others():
    effects = np.array([[9.0, 1, 2], [3, 9, 4], [5, 6, 9]])  # those on itself do not count
    found = PairMeans([effects[None], effects[None]])
    assert found.gains(np.array([[0, 1, 2]])).tolist() == [[4, 3.5, 3]]
    assert found.gains(PAIRS).tolist() == [[3, 1], [5, 2], [6, 4]]
    assert found.gains(np.array([[0], [2]])).tolist() == [[0], [0]]


def test_points_count_by_their_rounds_and_weights():
    found = PairMeans([np.full((2, 2, 2), 1.0), np.full((4, 2, 2), 4.0)])
    assert found.gains(PAIRS[:1]).tolist() == [[3, 3]]
    weights = [np.array([4.0, 0]), np.zeros(4)]
    assert found.gains(PAIRS[:1], weights).tolist() == [[1, 1]]


# Linear fits


def linear_tasks(wanted, rounds, rng, columns=6):
    """Batches of one example, with the residuals x (0 - wanted) of linear models that start at 0.

    The losses (R, m), their gradients (R, m, D), and the inputs (R, m, D) of the examples.
    """
    x = rng.normal(size=(rounds, len(wanted), columns))
    residuals = -np.einsum("rmd,md->rm", x, np.asarray(wanted))
    return residuals**2 / 2, x * residuals[..., None], x


def primal_step(x, targets, radius):
    """The least-squares step (D,) of x (n, D) towards targets (n,), no longer than the radius."""
    square, right = x.T @ x, x.T @ targets

    def solution(ridge):
        return np.linalg.solve(square + ridge * np.eye(len(square)), right)

    if np.linalg.norm(solution(1e-12)) <= radius:
        return solution(1e-12)
    return solution(brentq(lambda r: np.linalg.norm(solution(r)) - radius, 1e-12, 1e6, xtol=1e-14))


@pytest.mark.parametrize("radius", [0.1, 0.7, 100.0])
def test_the_estimated_losses_are_those_of_least_squares_within_the_radius(radius, rng):
    """On linear models the estimate is exact: the solution in D dimensions, task by task."""
    shared = rng.normal(size=6)
    wanted = np.array([shared, shared, -shared])
    losses, gradients, x = linear_tasks(wanted, 16, rng)
    targets = np.einsum("rmd,md->rm", x, wanted)
    point, subsets = LinearPoint.of(losses, gradients), np.array([(0, 1), (1, 2)])
    for tasks, estimated in zip(subsets, point.losses(subsets, radius), strict=True):
        expected = np.zeros(2)
        for half in (0, 1):
            rows, right = (np.concatenate([one[half::2, t] for t in tasks]) for one in (x, targets))
            step = primal_step(rows / np.sqrt(8), right / np.sqrt(8), radius)
            for place, task in enumerate(tasks):
                errors = x[1 - half :: 2, task] @ step - targets[1 - half :: 2, task]
                expected[place] += (errors**2).mean() / 2 / 2
        # Both searches end within 1e-12 of the ridge; eigenvalues add their rounding.
        np.testing.assert_allclose(estimated, expected, rtol=1e-6, atol=1e-9)


def test_tasks_that_share_a_direction_help_and_opposed_ones_hurt(rng):
    shared = rng.normal(size=6)
    losses, gradients, _ = linear_tasks([shared, shared, -shared], 8, rng)
    found = LinearFits.fitted([LinearPoint.of(losses, gradients)]).gains(PAIRS)
    assert (found[0] > 0).all()
    assert (found[1:] < 0).all()


def test_tasks_without_common_inputs_have_no_effect(rng):
    losses, gradients, _ = linear_tasks(rng.normal(size=(2, 6)), 8, rng)
    apart = np.zeros((8, 2, 12))
    apart[:, 0, :6], apart[:, 1, 6:] = gradients[:, 0], gradients[:, 1]
    found = LinearFits([LinearPoint.of(losses, apart)], [100.0]).gains(PAIRS[:1])
    np.testing.assert_allclose(found, 0, atol=1e-12)


def test_a_single_task_gains_nothing_and_weights_of_one_change_nothing(rng):
    losses, gradients, _ = linear_tasks(rng.normal(size=(3, 6)), 8, rng)
    found = LinearFits([LinearPoint.of(losses, gradients)] * 2, [0.5, 0.5])
    np.testing.assert_allclose(found.gains(np.array([[0], [1], [2]])), 0, atol=1e-12)
    plain = found.gains(PAIRS)
    np.testing.assert_allclose(found.gains(PAIRS, [np.ones(8)] * 2), plain, **EXACTLY)
    np.testing.assert_allclose(found.gains(PAIRS, [np.ones(8), np.zeros(8)]), plain, **EXACTLY)


def test_a_round_that_counts_twice_is_a_round_that_occurs_twice(rng):
    losses, gradients, _ = linear_tasks(rng.normal(size=(3, 6)), 4, rng)
    weights = np.array([2.0, 2, 0, 0])  # of halves 0, 2 and 1, 3
    once = LinearPoint.of(losses, gradients).losses(PAIRS, 0.5, weights)
    rows = [0, 1, 0, 1]
    twice = LinearPoint.of(losses[rows], gradients[rows]).losses(PAIRS, 0.5)
    np.testing.assert_allclose(once, twice, rtol=1e-6)  # eigenvalues near 0 are rounded


def test_the_radius_is_small_where_the_fit_does_not_generalise(rng):
    losses, gradients = np.ones((8, 2)), rng.normal(size=(8, 2, 5))
    gradients[1::2] = -gradients[::2]  # what lowers one half raises the other
    one = LinearPoint.of(losses, gradients)
    assert LinearFits.fitted([one]).radii == [RADII[0] * one.free_length()]
    shared = rng.normal(size=6)
    one = LinearPoint.of(*linear_tasks([shared, shared], 40, rng)[:2])
    assert LinearFits.fitted([one]).radii == [one.free_length()]
    assert one.free_length() == pytest.approx(np.linalg.norm(shared))


def test_steps_have_at_most_the_length_of_the_radius(rng):
    values, wanted = rng.uniform(0, 3, size=(50, 7)), rng.normal(size=(50, 7))
    values[:, 0] = 0
    ridges = ridges_of(values, wanted, 0.4)
    lengths = np.sqrt((values * (wanted / (values + ridges[:, None])) ** 2).sum(1))
    np.testing.assert_allclose(lengths, 0.4, rtol=1e-9)
    free = ridges_of(values, wanted, 1e9)
    assert (free <= 1e-9).all()


def test_gradients_that_are_zero_change_no_loss():
    losses = np.ones((4, 2))
    found = LinearPoint.of(losses, np.zeros((4, 2, 3))).losses(PAIRS[:1], 1.0)
    np.testing.assert_allclose(found, 1)


# Bootstrap


def test_weights_draw_whole_seeds_and_as_many_rounds_of_each_half():
    generator = np.random.default_rng(0)
    for _ in range(20):
        weights = bootstrap_weights([6, 4, 6], [1, 1, 2], generator)
        times = [one.sum() / len(one) for one in weights]
        assert times[0] == times[1]
        assert times[0] + times[2] == 2
        for one in weights:
            assert one[::2].sum() == one[1::2].sum()


def test_the_interval_of_a_mean_is_about_that_of_its_standard_error(rng):
    effects = rng.normal(1, 2, size=(200, 2, 2))
    low, high = intervals(PairMeans([effects]), PAIRS[:1], [200], [1], draws=1000)
    error = effects[:, 0, 1].std() / np.sqrt(200)
    # The percentiles of 1,000 draws are known to about 10 % of a standard error.
    assert high[0, 1] - low[0, 1] == pytest.approx(2 * 1.96 * error, rel=0.2)
    assert low[0, 1] < effects[:, 0, 1].mean() < high[0, 1]


def test_the_fewer_rounds_the_wider_are_intervals():
    """Student's t at 97.5 % with 2, 6 and 14 degrees of freedom is 4.303, 2.447, 2.145."""
    for rounds, half, t in (([4], 2, 4.303), ([4] * 3, 2, 2.447), ([16], 8, 2.145)):
        assert widening(rounds) == pytest.approx((half / (half - 1)) ** 0.5 * t / 1.960, rel=1e-3)


@pytest.mark.parametrize(("rounds", "points"), [(4, 1), (4, 3)])
def test_intervals_of_few_rounds_miss_about_one_mean_in_twenty(rng, rounds, points):
    """The percentiles themselves miss it in about a third of the cases with 4 rounds."""
    missed, count = 0, 300
    for _ in range(count):
        effects = [rng.normal(size=(rounds, 2, 2)) for _ in range(points)]
        estimator = PairMeans(effects)
        low, high = intervals(estimator, PAIRS[:1], [rounds] * points, [1] * points)[:, 0, 1]
        missed += not low < 0 < high
    # 5 %, 10 % where draws of two rounds are a coarse distribution, and three standard deviations.
    assert missed / count < 0.10 + 3 * (0.1 * 0.9 / count) ** 0.5


# Groups


def by_force(gains, tasks, most):
    """The best total over all choices of groups, each task from the best group that has it."""
    best = -np.inf
    for count in range(1, most + 1):
        for groups in combinations(gains, count):
            served = [
                max((gains[one][one.index(t)] for one in groups if t in one), default=-np.inf)
                for t in range(tasks)
            ]
            best = max(best, sum(served))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_exact_groups_have_the_total_of_an_exhaustive_search(seed):
    generator, tasks = np.random.default_rng(seed), 4
    gains = {one: generator.normal(size=len(one)) for one in subsets_of(tasks)}
    for most, found in enumerate(exact_groupings(gains, 3), 1):
        assert found.total == pytest.approx(by_force(gains, tasks, most))
        assert len(found.groups) <= most
        assert sorted(t for one in found.groups for t in one.serves) == list(range(tasks))
        served = sum(
            gains[one.tasks][one.tasks.index(t)] for one in found.groups for t in one.serves
        )
        assert served == pytest.approx(found.total)


def test_a_group_may_train_a_task_that_another_group_serves():
    gains = {(0,): [0], (1,): [0], (0, 1): [1, -1]}
    one, two = exact_groupings(gains, 2)
    assert (one.total, two.total) == (0, 1)
    assert set(two.groups) == {Group((0, 1), (0,)), Group((1,), (1,))}


def test_of_equal_totals_fewer_and_smaller_groups_are_chosen():
    gains = {one: np.zeros(len(one)) for one in subsets_of(3)}
    found = exact_groupings(gains, 3)
    assert [len(one.groups) for one in found] == [1, 1, 1]
    gains = {one: [1.0] * len(one) if len(one) < 3 else [0.5] * 3 for one in subsets_of(3)}
    assert all(len(one.tasks) == len(one.serves) for one in exact_groupings(gains, 3)[-1].groups)


def blocks(sizes):
    """Gains of 1 within blocks of tasks and -1 between them, with differences within."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.where(labels[:, None] == labels, 1.0, -1.0) + 0.01 * np.arange(len(labels))


def test_clusters_are_the_blocks_of_tasks_that_help_each_other():
    pairs = blocks([3, 4, 3])
    estimator = PairMeans([pairs[None]])

    def gains(tasks):
        return estimator.gains(np.array([tasks]))[0]

    found = clustered_groupings(pairs, gains, 5)
    assert [one.tasks for one in found[2].groups] == [(0, 1, 2), (3, 4, 5, 6), (7, 8, 9)]
    totals = [one.total for one in found]
    assert totals == sorted(totals)
    assert found[4] == found[2]  # more groups are not better
    assert linkage_of(pairs).shape == (9, 4)


def test_affinities_are_means_over_the_subsets_that_contain_both_tasks():
    gains = {(0, 1): [1.0, 2.0], (0, 1, 2): [3.0, 4.0, 5.0]}
    found = subset_means(gains, 4)
    assert found[:3, :3].tolist() == [[2, 3, 5], [2, 3, 5], [3, 4, 5]]
    assert np.isnan(found[3]).all()


def test_random_subsets_are_the_same_again_and_contain_every_pair():
    found = random_subsets(12, 30, 4, seed=5)
    assert found == random_subsets(12, 30, 4, seed=5)
    pairs = {pair for one in found for pair in combinations(one, 2)}
    assert len(pairs) == 12 * 11 / 2
    assert all(list(one) == sorted(set(one)) for one in found)
