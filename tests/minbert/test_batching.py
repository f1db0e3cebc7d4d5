"""Packing, length buckets and poolings against naive loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from minbert.batching import Batch, TokenLists, bucketed_batches, pack, sorted_batches
from minbert.pooling import POOLINGS

sequences = st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=6), min_size=1, max_size=8)


def token_lists(rows, segments=None):
    def flat(lists, dtype):
        return np.array([x for row in lists for x in row], dtype)

    return TokenLists(
        ids=flat(rows, np.int32),
        offsets=np.concatenate([[0], np.cumsum([len(row) for row in rows])]),
        truncated=np.zeros(len(rows), np.bool_),
        segments=None if segments is None else flat(segments, np.int8),
    )


@settings(max_examples=60)
@given(rows=sequences, data=st.data())
def test_pack_equals_a_naive_loop(rows, data):
    n = len(rows)
    second = data.draw(st.none() | st.lists(st.lists(st.integers(0, 99), min_size=1), min_size=n,
                                            max_size=n))  # fmt: skip
    picked = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=10))
    marked = data.draw(st.booleans())
    segments = [[i % 2 for i in range(len(row))] for row in rows] if marked else None
    texts = [token_lists(rows, segments)] + ([] if second is None else [token_lists(second)])
    batch = pack(texts, np.array(picked))
    expected = [rows[i] for i in picked] + ([second[i] for i in picked] if second else [])
    assert batch.ids.tolist() == [token for row in expected for token in row]
    assert batch.lengths.tolist() == [len(row) for row in expected]
    assert (batch.texts, batch.examples) == (len(texts), len(picked))
    assert batch.longest == max(map(len, expected))
    assert batch.sequence.tolist() == [s for s, row in enumerate(expected) for _ in row]
    assert batch.positions.tolist() == [p for row in expected for p in range(len(row))]
    assert batch.example_index.tolist() == [
        s % len(picked) for s, row in enumerate(expected) for _ in row
    ]
    parts = batch.split(torch.arange(len(expected)))
    assert torch.equal(torch.stack(parts).flatten(), torch.arange(len(expected)))
    assert len(parts) == len(texts)
    starts = [sum(len(row) for row in expected[:s]) for s in range(len(expected))]
    assert batch.starts.tolist() == starts
    if segments is None:
        assert batch.segments is None
    else:
        first = [x for i in picked for x in segments[i]]
        assert batch.segments.tolist() == first + [0] * (len(batch.ids) - len(first))


def test_a_batch_is_copied_to_another_device_only():
    batch = Batch(lengths=torch.tensor([2, 1]), ids=torch.arange(3), segments=torch.zeros(3))
    assert batch.to("cpu") is batch
    moved = batch.to("meta")
    assert moved.ids.device.type == moved.segments.device.type == "meta"
    assert moved.lengths.device.type == "cpu"


lengths_of = st.lists(st.integers(1, 60), min_size=1, max_size=200).map(np.array)


@settings(max_examples=40)
@given(lengths=lengths_of, max_tokens=st.integers(1, 300))
def test_sorted_batches_cover_all_rows_longest_first(lengths, max_tokens):
    batches = sorted_batches(lengths, max_tokens)
    rows = np.concatenate(batches)
    assert sorted(rows) == list(range(len(lengths)))
    assert (np.diff(lengths[rows]) <= 0).all()
    for batch in batches:
        assert len(batch) * lengths[batch].max() <= max_tokens or len(batch) == 1
    for batch in batches[:-1]:  # none could hold one more
        assert (len(batch) + 1) * lengths[batch].max() > max_tokens


@settings(max_examples=40)
@given(lengths=lengths_of, batch_size=st.integers(1, 20), seed=st.integers(0, 9),
       window=st.integers(1, 5))  # fmt: skip
def test_bucketed_batches_are_a_permutation(lengths, batch_size, seed, window):
    batches = bucketed_batches(lengths, batch_size, np.random.default_rng(seed), window)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert max(len(b) for b in batches) <= batch_size
    assert sum(len(b) < batch_size for b in batches) <= 1
    again = bucketed_batches(lengths, batch_size, np.random.default_rng(seed), window)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_bucketed_batches_are_random_and_alike_in_length():
    lengths = np.random.default_rng(0).integers(1, 100, 5000)
    one, other = (bucketed_batches(lengths, 16, np.random.default_rng(s)) for s in (1, 2))
    assert {frozenset(b) for b in one}.isdisjoint({frozenset(b) for b in other})
    spread = np.mean([np.ptp(lengths[b]) for b in one])
    assert spread < 5
    means = np.array([lengths[b].mean() for b in one])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2  # order of batches is random


LENGTHS = [3, 1, 7, 2]
NAIVE = {
    "mean": lambda states: states.sum(0) / len(states),
    "cls": lambda states: states[0],
    "max": lambda states: states.max(0).values,
}


@pytest.fixture
def batch():
    return Batch(lengths=torch.tensor(LENGTHS), ids=torch.zeros(sum(LENGTHS), dtype=torch.long))


@pytest.fixture
def hidden():
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(sum(LENGTHS), 5, dtype=torch.float64, generator=generator)
    return (states - 10).requires_grad_()  # all negative: a zero from padding would win a maximum


@pytest.mark.numeric
@pytest.mark.parametrize("name", NAIVE)
def test_a_pooling_and_its_gradient_equal_a_naive_loop(name, hidden, batch):
    assert NAIVE.keys() == POOLINGS.keys()
    expected = torch.stack([NAIVE[name](states) for states in hidden.split(LENGTHS)])
    found = POOLINGS[name](hidden, batch)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    weights = torch.arange(found.numel(), dtype=torch.float64).view_as(found)
    (ours,) = torch.autograd.grad((found * weights).sum(), hidden)
    (naive,) = torch.autograd.grad((expected * weights).sum(), hidden)
    torch.testing.assert_close(ours, naive, atol=1e-12, rtol=0)
