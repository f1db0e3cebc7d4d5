"""Streams of one task's batches."""

from functools import partial

import numpy as np
import pytest

from minbert.batching import bucketed_batches
from multitask.streams import BatchStream, class_batches


def test_a_stream_shows_every_row_once_a_pass_and_shuffles_each_pass():
    stream = BatchStream(
        partial(bucketed_batches, np.random.default_rng(0).integers(1, 40, 50), 8), 3, "sst"
    )
    passes = [[stream.next() for _ in range(7)] for _ in range(2)]
    for batches in passes:
        assert sorted(np.concatenate(batches)) == list(range(50))
    assert stream.position == (2, 0)
    assert any((a != b).any() for a, b in zip(*passes, strict=True) if len(a) == len(b))


def test_a_stream_goes_on_from_a_stored_position():
    lengths = np.arange(1, 51)
    first, second = (BatchStream(partial(bucketed_batches, lengths, 8), 3, "sst") for _ in range(2))
    for _ in range(10):
        first.next()
    second.position = first.position
    for _ in range(10):
        np.testing.assert_array_equal(first.next(), second.next())


@pytest.mark.parametrize(("batch_size", "each"), [(16, 5), (6, 2), (2, 1)])
def test_batches_of_as_many_examples_of_each_class(batch_size, each):
    targets = np.array([0] * 40 + [1] * 7 + [2] * 15)
    batches = class_batches(targets, batch_size, np.random.default_rng(0))
    assert len(batches) == -(-len(targets) // batch_size)
    for rows in batches:
        assert np.bincount(targets[rows], minlength=3).tolist() == [each] * 3
    for label, count in enumerate(np.bincount(targets)):
        seen = [rows[targets[rows] == label] for rows in batches]
        taken = np.concatenate(seen)[:count]
        assert len(set(taken.tolist())) == len(taken)  # all of a class before any comes again
    again = class_batches(targets, batch_size, np.random.default_rng(0))
    assert all((one == other).all() for one, other in zip(batches, again, strict=True))


def test_a_trainer_draws_its_batches_by_class(make_trainer):
    trainer = make_trainer(
        mode="single", tasks=("sst",), objective="epo", per_class=True, batch_size=10,
        combiner="sum", gradients="representation", batches_per_step=1,
    )  # fmt: skip
    targets = trainer.splits["sst"]["train"].examples.targets
    (rows,) = trainer.draw(np.array([0]))["sst"]
    assert np.bincount(targets[rows]).tolist() == [2] * 5
