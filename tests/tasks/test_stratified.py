"""Stratified parts of grouped rows: whole groups, sizes, shares of labels, and a naive check."""

from fractions import Fraction

import numpy as np
import pytest

from tasks.stratified import joined_rows, stratified_parts

SEEDS = range(40)


def drawn(seed):
    """Rows with labels of very different frequency, groups of 1 to 6 rows, sizes of parts."""
    rng = np.random.default_rng(seed)
    n, kinds, parts = rng.integers(20, 200), rng.integers(1, 9), rng.integers(2, 7)
    has = rng.random((n, kinds)) < rng.uniform(0.02, 0.6, kinds)
    rows, labels = np.nonzero(has)
    values = rng.integers(0, max(1, n // rng.integers(1, 4)), n)
    groups = np.unique(values, return_inverse=True)[1]
    weights = rng.integers(1, 9, parts)
    sizes = n * weights // weights.sum()
    sizes[0] += n - sizes.sum()
    return rows, labels, groups, sizes


def naive_parts(rows, labels, groups, sizes):
    """The algorithm with fractions and dictionaries, without the moves at the end."""
    n, kinds = len(groups), labels.max() + 1
    units = {g: np.flatnonzero(groups == g).tolist() for g in range(groups.max() + 1)}
    pairs = list(zip(rows.tolist(), labels.tolist(), strict=True))
    counts = {
        (unit, label): sum(row in own and one == label for row, one in pairs)
        for unit, own in units.items()
        for label in range(kinds)
    }
    shuffled = np.random.default_rng(0).permutation(len(units))
    rows_needed = [Fraction(int(size)) for size in sizes]
    needed = {
        (part, label): Fraction(int(size), n) * sum(counts[unit, label] for unit in units)
        for part, size in enumerate(sizes)
        for label in range(kinds)
    }
    part_of = {}

    def put(unit, wish):
        able = [part for part in range(len(sizes)) if rows_needed[part] > 0]
        best = max(able, key=lambda part: (wish(part), rows_needed[part], -part))
        part_of[unit] = best
        rows_needed[best] -= len(units[unit])
        for label in range(kinds):
            needed[best, label] -= counts[unit, label]

    while True:
        free = [unit for unit in units if unit not in part_of]
        left = {label: sum(counts[unit, label] for unit in free) for label in range(kinds)}
        left = {label: count for label, count in left.items() if count}
        if not left:
            break
        rarest = min(left, key=lambda label: (left[label], label))
        having = [unit for unit in free if counts[unit, rarest]]
        for unit in sorted(having, key=lambda unit: (-counts[unit, rarest], shuffled[unit])):
            put(unit, lambda part: needed[part, rarest])  # noqa: B023 (called at once)
    for unit in sorted(free, key=lambda unit: (-len(units[unit]), shuffled[unit])):
        put(unit, lambda part: rows_needed[part])
    return np.array([part_of[group] for group in groups])


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_are_whole_groups_of_the_wanted_sizes(seed):
    rows, labels, groups, sizes = drawn(seed)
    found = stratified_parts(rows, labels, groups, sizes)
    assert found.shape == groups.shape
    assert set(found) <= set(range(len(sizes)))
    for group in range(groups.max() + 1):
        assert len(set(found[groups == group])) == 1
    difference = np.bincount(found, minlength=len(sizes)) - sizes
    assert abs(difference).max() <= np.bincount(groups).max()
    np.testing.assert_array_equal(stratified_parts(rows, labels, groups, sizes), found)


@pytest.mark.parametrize("seed", SEEDS)
def test_parts_are_those_of_the_naive_algorithm(seed):
    """Groups of one row need no moves; with larger ones, most rows are where it puts them."""
    rows, labels, groups, sizes = drawn(seed)
    alone = np.arange(len(groups))
    expected = naive_parts(rows, labels, alone, sizes)
    np.testing.assert_array_equal(stratified_parts(rows, labels, alone, sizes), expected)
    np.testing.assert_array_equal(np.bincount(expected, minlength=len(sizes)), sizes)
    together = naive_parts(rows, labels, groups, sizes)
    gap = np.bincount(together, minlength=len(sizes)) - sizes
    if gap.max() - gap.min() <= 1:
        np.testing.assert_array_equal(stratified_parts(rows, labels, groups, sizes), together)


def test_labels_have_nearly_their_share_in_each_part():
    """Two columns of classes with blanks, and tags: compared with random splits."""
    ratios = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        n, sizes = 500, (400, 50, 50)
        topics = np.eye(5)[rng.choice(5, n, p=[0.05, 0.1, 0.2, 0.25, 0.4])]
        urgency = np.eye(3)[rng.choice(3, n, p=[0.2, 0.5, 0.3])]
        known = rng.random((2, n, 1)) > 0.15
        tags = rng.random((n, 6)) < rng.uniform(0.04, 0.5, 6)
        has = np.hstack([topics * known[0], urgency * known[1], tags])
        rows, labels = np.nonzero(has)
        expected = np.outer(sizes, has.sum(0)) / n

        def distance(parts, rows=rows, labels=labels, expected=expected):
            found = np.zeros(expected.shape)
            np.add.at(found, (parts[rows], labels), 1)
            return abs(found - expected)

        found = distance(stratified_parts(rows, labels, np.arange(n), sizes))
        parts = np.repeat([0, 1, 2], sizes)
        random = np.mean([distance(rng.permutation(parts)).sum() for _ in range(20)])
        ratios.append(found.sum() / random)
        assert found[:, has.sum(0).argmin()].max() <= 1  # the rarest label
    assert np.mean(ratios) < 0.4
    assert max(ratios) < 0.8


def test_the_rarest_label_is_in_every_part_that_can_have_it():
    labels = np.array([0] * 90 + [1] * 10)
    found = stratified_parts(np.arange(100), labels, np.arange(100), (80, 10, 10))
    assert np.bincount(found[labels == 1]).tolist() == [8, 1, 1]
    found = stratified_parts(np.arange(100), labels, np.arange(100), (20,) * 5)
    assert np.bincount(found[labels == 1]).tolist() == [2] * 5


def test_rows_without_labels_are_dealt_too():
    none = np.zeros(0, np.int64)
    found = stratified_parts(none, none, np.arange(10), (8, 1, 1))
    assert np.bincount(found).tolist() == [8, 1, 1]


def test_rows_that_share_a_value_are_joined_also_through_others():
    customers = ["a", "b", None, None, "a", "c"]
    texts = [1, 2, 3, 4, 5, 2]
    groups = joined_rows(6, customers, texts)
    assert groups[0] == groups[4]
    assert groups[1] == groups[5]
    assert len(set(groups.tolist())) == groups.max() + 1 == 4


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_are_the_components_of_a_graph(seed):
    """Compared with the powers of the matrix of rows that share a value."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, 25, (2, 30))
    near = (first[:, None] == first) | (second[:, None] == second)
    for _ in range(5):  # paths of up to 32 steps
        near = (near.astype(int) @ near) > 0
    groups = joined_rows(30, first.tolist(), second.tolist())
    np.testing.assert_array_equal(groups[:, None] == groups, near)
