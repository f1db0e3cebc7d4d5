"""Proposals of pairs: the nearest rows by brute force, no gold pair, every pair once."""

import itertools

import numpy as np
import pytest

from serving import search
from serving.proposals import neighbour_pairs, random_pairs, semantic_pairs

NO_GOLD = np.zeros((0, 2), np.int64)


def exact_rows(count, width=16, seed=0):
    """Multiples of 1/32: their products are exact, in any order, and seldom equal."""
    found = np.random.default_rng(seed).integers(-99, 100, (count, width))
    return found.astype(np.float32) / 32


def brute_force(rows, count):
    """Each row with its `count` nearest other rows, by a plain double loop."""
    found = set()
    for row, one in enumerate(rows.astype(np.float64)):
        others = [other for other in range(len(rows)) if other != row]
        others.sort(key=lambda other: -float(one @ rows[other].astype(np.float64)))
        found |= {tuple(sorted((row, other))) for other in others[:count]}
    return found


def unit(count, seed=0):
    found = np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("scores", [1, 90, 1 << 20])
@pytest.mark.parametrize("count", [1, 4, 29, 99])
def test_the_nearest_rows_equal_brute_force(monkeypatch, scores, count):
    monkeypatch.setattr(search, "SCORES", scores)
    for rows in (exact_rows(30), unit(30)):
        found = list(map(tuple, neighbour_pairs(rows, count).tolist()))
        assert found == sorted(brute_force(rows, count))


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_rows_have_no_pair(count):
    assert neighbour_pairs(unit(count), 3).shape == (0, 2)
    assert random_pairs(count, NO_GOLD, 3, 0).pairs.shape == (0, 2)


def test_rows_of_nan_are_in_no_pair():
    embeddings, there = unit(12), np.array([1, 2, 3, 5, 6, 7, 8, 10])
    found = neighbour_pairs(embeddings[there], 3)
    embeddings[[0, 4, 9, 11]] = np.nan
    assert neighbour_pairs(embeddings, 3).tolist() == there[found].tolist()
    embeddings[:] = np.nan
    assert neighbour_pairs(embeddings, 3).shape == (0, 2)


def test_equal_rows_are_paired_with_each_other_not_with_themselves():
    pairs = neighbour_pairs(np.ones((6, 4), np.float32), 2)
    assert (pairs[:, 0] < pairs[:, 1]).all()


def gold_of(n, share, seed):
    every = np.array(list(itertools.combinations(range(n), 2)), np.int64).reshape(-1, 2)
    return every[np.random.default_rng(seed).random(len(every)) < share]


@pytest.mark.parametrize("how", ["semantic", "random"])
@pytest.mark.parametrize(("n", "share", "count"), [(25, 0.3, 40), (25, 0.9, 1000), (60, 0.0, 5)])
def test_pairs_are_distinct_and_not_gold(how, n, share, count):
    for seed in range(3):
        gold = gold_of(n, share, seed)
        if how == "semantic":
            found, again = (semantic_pairs(unit(n), gold, 6, count, seed) for _ in range(2))
            possible = brute_force(unit(n), 6)
        else:
            found, again = (random_pairs(n, gold, count, seed) for _ in range(2))
            possible = set(itertools.combinations(range(n), 2))
        known = set(map(tuple, gold.tolist()))
        pairs = list(map(tuple, found.pairs.tolist()))
        assert pairs == sorted(set(pairs))
        assert set(pairs) <= possible - known
        assert len(pairs) == min(count, len(possible - known))
        assert np.array_equal(found.pairs, again.pairs)
        if how == "semantic":
            assert found.gold == len(possible & known)
        else:
            assert found.gold <= len(known), "each counts once, however often it is drawn"


def test_seeds_draw_other_pairs_and_all_pairs_are_equally_likely():
    n, count = 12, 20
    drawn = [random_pairs(n, NO_GOLD, count, seed).pairs for seed in range(300)]
    assert not np.array_equal(drawn[0], drawn[1])
    hits = np.bincount(np.concatenate([p[:, 0] * n + p[:, 1] for p in drawn]), minlength=n * n)
    hits = hits[hits > 0]
    assert len(hits) == n * (n - 1) // 2
    share = count / len(hits)  # hits are binomial: 300 draws with this share
    deviation = np.sqrt(300 * share * (1 - share))
    assert np.abs(hits - 300 * share).max() < 6 * deviation
