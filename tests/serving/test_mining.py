"""Mining is exact: against all pairs by brute force."""

import itertools

import numpy as np
import pytest

from serving import mining
from serving.mining import mine

pytestmark = pytest.mark.numeric


def rows(count, width=16, seed=0):
    """Multiples of 1/32, at most as long as 1: their products are exact, in any order."""
    found = np.random.default_rng(seed).integers(-8, 9, (count, width))
    return found.astype(np.float32) / 32


def unit_rows(count, width=16, seed=0):
    found = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("block", [3, 7, 64])
@pytest.mark.parametrize("count", [1, 5, 40, 10_000])
def test_the_top_pairs_equal_brute_force(monkeypatch, block, count):
    monkeypatch.setattr(mining, "BLOCK", block)
    monkeypatch.setattr(mining, "CHUNK", 50)
    embeddings = rows(50)
    pairs = mine(embeddings, count)
    cosines = embeddings @ embeddings.T
    every = sorted(itertools.combinations(range(50), 2), key=lambda pair: -cosines[pair])
    assert list(zip(pairs.first, pairs.second, strict=True)) == every[:count]
    assert pairs.cosines.tolist() == [cosines[pair] for pair in every[:count]]


def test_rounding_keeps_cosines_of_plus_and_minus_one():
    several = unit_rows(50, 384)
    found = mine(np.concatenate([several, several]), 1000, 1.0)
    assert {(i, i + 50) for i in range(50)} == set(zip(found.first, found.second, strict=True))
    assert len(mine(np.concatenate([several, -several]), 10_000).first) == 100 * 99 // 2


def test_pairs_below_the_threshold_are_dropped():
    pairs = mine(rows(60), 1000, threshold=0.2)
    assert len(pairs.cosines)
    assert pairs.cosines.min() >= 0.2
    everything = mine(rows(60), 10_000)
    assert (everything.cosines >= 0.2).sum() == len(pairs.cosines)


@pytest.mark.parametrize("block", [2, 100])
def test_ties_are_broken_by_the_smallest_rows(monkeypatch, block):
    monkeypatch.setattr(mining, "BLOCK", block)
    monkeypatch.setattr(mining, "CHUNK", 3)
    same = np.tile(np.array([[0.5, 0.25]], np.float32), (8, 1))
    pairs = mine(same, 4)
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(0, 1), (0, 2), (0, 3), (0, 4)]


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_sentences_have_no_pair(count):
    assert len(mine(rows(count), 5).first) == 0


@pytest.mark.parametrize("block", [2, 100])
def test_rows_of_nan_are_in_no_pair_and_never_near(monkeypatch, block):
    monkeypatch.setattr(mining, "BLOCK", block)
    embeddings, there = rows(12), np.array([1, 2, 3, 5, 6, 7, 8, 10])
    some = embeddings[there]
    embeddings[[0, 4, 9, 11]] = np.nan
    found, expected = mine(embeddings, 20), mine(some, 20)
    assert found.first.tolist() == there[expected.first].tolist()
    assert found.second.tolist() == there[expected.second].tolist()
    assert found.cosines.tolist() == expected.cosines.tolist()
