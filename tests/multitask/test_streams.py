"""Streams of one task's batches."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from common.errors import RunError, SettingsError
from minbert.batching import bucketed_batches
from multitask.config_tasks import build_tasks
from multitask.loop.batches import BatchStream, class_batches, make_pass, next_batches
from multitask.settings.config import RunConfig


def test_a_stream_contains_every_row_once_per_pass_in_a_new_order():
    stream = BatchStream(
        partial(bucketed_batches, np.random.default_rng(0).integers(1, 40, 50), 8), 3, "sst"
    )
    passes = [[stream.next() for _ in range(7)] for _ in range(2)]
    for batches in passes:
        assert sorted(np.concatenate(batches)) == list(range(50))
    assert stream.position == (2, 0)
    assert any((a != b).any() for a, b in zip(*passes, strict=True) if len(a) == len(b))


@pytest.mark.parametrize("batch_size", [48, 16, 6, 2])
@pytest.mark.parametrize("seed", range(5))
def test_class_balanced_batches(batch_size, seed):
    sizes = (40, 7, 15)
    targets = np.repeat(np.arange(3), sizes)
    batches = class_batches(targets, batch_size, np.random.default_rng(seed))
    assert len(batches) == -(-len(targets) // batch_size)
    each = [min(max(1, batch_size // 3), size) for size in sizes]
    for rows in batches:
        assert np.bincount(targets[rows], minlength=3).tolist() == each
        assert len(set(rows.tolist())) == len(rows)  # none twice
    for label in range(3):
        seen = np.concatenate([rows[targets[rows] == label] for rows in batches])
        counts = np.bincount(seen, minlength=len(targets))[targets == label]
        assert counts.max() - counts.min() <= 1  # all of a class before any comes again
    again = class_batches(targets, batch_size, np.random.default_rng(seed))
    assert all((one == other).all() for one, other in zip(batches, again, strict=True))


def test_too_small_class_balanced_batches_are_refused(make_trainer):
    with pytest.raises(SettingsError, match="batch_size: expected 10 or more for the 5 classes"):
        make_trainer(only="sst", objective="ls", class_balanced=True, batch_size=9)
    assert make_trainer(only="sst", class_balanced=True, batch_size=5).streams


def test_a_trainer_draws_its_batches_by_class(make_trainer):
    trainer = make_trainer(only="sst", objective="epo", class_balanced=True, batch_size=10)
    targets = trainer.splits["sst"]["train"].examples.targets
    (rows,) = next_batches(trainer.streams, np.array([0]))["sst"]
    assert np.bincount(targets[rows]).tolist() == [2] * 5


def test_an_objective_needs_two_examples_of_a_class():
    config = RunConfig(mode="pretrain", tasks=("sst",), objective="supcon")
    (task,) = build_tasks(config).values()

    def split(*targets):
        return SimpleNamespace(examples=SimpleNamespace(targets=np.array(targets)))

    assert make_pass(config, task, split(0, 0, 1, 1))
    with pytest.raises(RunError, match="and two examples of one, found"):
        make_pass(config, task, split(0, 1, 2, 3))
