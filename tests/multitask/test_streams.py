"""Streams of one task's batches."""

import numpy as np

from multitask.streams import BatchStream


def test_a_stream_shows_every_row_once_a_pass_and_shuffles_each_pass():
    stream = BatchStream(np.random.default_rng(0).integers(1, 40, 50), 8, 3, "sst")
    passes = [[stream.next() for _ in range(7)] for _ in range(2)]
    for batches in passes:
        assert sorted(np.concatenate(batches)) == list(range(50))
    assert stream.position == (2, 0)
    assert any((a != b).any() for a, b in zip(*passes, strict=True) if len(a) == len(b))


def test_a_stream_goes_on_from_a_stored_position():
    lengths = np.arange(1, 51)
    first, second = (BatchStream(lengths, 8, 3, "sst") for _ in range(2))
    for _ in range(10):
        first.next()
    second.position = first.position
    for _ in range(10):
        np.testing.assert_array_equal(first.next(), second.next())
