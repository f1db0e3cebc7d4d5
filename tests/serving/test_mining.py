"""Mining is exact: against all pairs by brute force."""

import itertools

import numpy as np
import pytest

from serving import mining
from serving.mining import mine, nearest


def rows(count, width=16, seed=0):
    found = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("block", [3, 7, 64])
@pytest.mark.parametrize("count", [1, 5, 40, 10_000])
def test_the_best_pairs_of_all(monkeypatch, block, count):
    monkeypatch.setattr(mining, "BLOCK", block)
    monkeypatch.setattr(mining, "CHUNK", 50)
    embeddings = rows(50)
    pairs = mine(embeddings, count)
    cosines = embeddings.astype(np.float64) @ embeddings.T.astype(np.float64)
    every = sorted(itertools.combinations(range(50), 2), key=lambda pair: -cosines[pair])
    assert list(zip(pairs.first, pairs.second, strict=True)) == every[:count]
    np.testing.assert_allclose(pairs.cosines, [cosines[pair] for pair in every[:count]], atol=1e-6)


def test_rounding_loses_no_pair_at_the_ends():
    several = rows(50, 384)
    found = mine(np.concatenate([several, several]), 1000, 1.0)
    assert {(i, i + 50) for i in range(50)} == set(zip(found.first, found.second, strict=True))
    assert len(mine(np.concatenate([several, -several]), 10_000).first) == 100 * 99 // 2


def test_pairs_below_the_threshold_do_not_count():
    pairs = mine(rows(60), 1000, threshold=0.3)
    assert len(pairs.cosines)
    assert pairs.cosines.min() >= 0.3
    everything = mine(rows(60), 10_000)
    assert (everything.cosines >= 0.3).sum() == len(pairs.cosines)


@pytest.mark.parametrize("block", [2, 100])
def test_of_equal_pairs_those_of_the_first_rows_count(monkeypatch, block):
    monkeypatch.setattr(mining, "BLOCK", block)
    monkeypatch.setattr(mining, "CHUNK", 3)
    same = np.tile(np.array([[0.6, 0.8]], np.float32), (8, 1))
    pairs = mine(same, 4)
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(0, 1), (0, 2), (0, 3), (0, 4)]


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_sentences_have_no_pair(count):
    assert len(mine(rows(count), 5).first) == 0


def test_the_nearest_rows():
    embeddings, query = rows(30), rows(2, seed=1)
    places, cosines = nearest(embeddings, query, 4)
    expected = np.argsort(-(query @ embeddings.T), axis=1)[:, :4]
    assert places.tolist() == expected.tolist()
    np.testing.assert_allclose(cosines, np.take_along_axis(query @ embeddings.T, expected, 1))
    assert nearest(embeddings, query, 99)[0].shape == (2, 30)
