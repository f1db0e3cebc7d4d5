"""Samplers: the paper's probabilities, lengths of epochs, seeding, and streams of batches."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multitask.sampling import (
    SAMPLERS,
    Annealed,
    BatchStream,
    RoundRobin,
    Workload,
    annealed_probabilities,
    generator,
)

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "annealed_sampling.json").read_text())
SCHEDULES = json.loads((FOLDER / "batch_schedules.json").read_text())
ROUND_ROBIN = [  # ours keeps the last, short batch of a pass
    case
    for case in SCHEDULES["cases"]
    if case["inputs"]["strategy"] == "round_robin" and not case["inputs"]["drop_last"]
]


def workload(**changes):
    values = {
        "sizes": (100, 31, 64),
        "batch_size": 8,
        "batches_per_step": 3,
        "epochs": 4,
        "steps_per_epoch": None,
        "seed": 1,
    }
    return Workload(**(values | changes))


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["id"])
def test_annealed_probabilities_equal_the_golden_vectors(case):
    inputs = case["inputs"]
    for row in case["expected"]["schedule"]:
        found = annealed_probabilities(inputs["sizes"], row["epoch"], inputs["epochs"])
        np.testing.assert_allclose(found, row["p"], **GOLDEN["tolerance"])


@given(
    st.lists(st.integers(1, 10**7), min_size=1, max_size=8), st.integers(1, 20), st.integers(0, 19)
)
def test_annealing_moves_every_task_towards_an_equal_share(sizes, epochs, earlier):
    epoch = min(earlier + 1, epochs)
    chances = annealed_probabilities(sizes, epoch, epochs)
    assert chances.sum() == pytest.approx(1)
    first = annealed_probabilities(sizes, 1, epochs)
    np.testing.assert_allclose(first, np.array(sizes) / sum(sizes))
    spread = lambda p: p.max() - p.min()  # noqa: E731
    assert spread(chances) <= spread(first) + 1e-12


@pytest.mark.parametrize("epoch", [0, 5])
def test_an_epoch_outside_the_run_is_an_error(epoch):
    with pytest.raises(ValueError, match=f"expected 1 to 4, found {epoch}"):
        annealed_probabilities([3, 4], epoch, 4)


@pytest.mark.parametrize("sizes", [[], [0, 3], [-1, 2], [float("nan")]])
def test_sizes_that_are_no_counts_are_an_error(sizes):
    with pytest.raises(ValueError, match="expected positive numbers"):
        annealed_probabilities(sizes, 1, 1)


def test_round_robin_goes_on_for_as_long_as_the_smallest_task():
    batches = RoundRobin(workload()).batches(1)
    assert batches.tolist() == [0, 1, 2] * 4  # 31 examples are 4 batches of 8


def test_round_robin_of_one_task_is_one_pass():
    assert RoundRobin(workload(sizes=(31,), batches_per_step=1)).batches(1).tolist() == [0] * 4


def test_round_robin_goes_on_with_the_task_whose_turn_it_is():
    sampler = RoundRobin(workload(steps_per_epoch=2, batches_per_step=2))
    assert [*sampler.batches(1), *sampler.batches(2)] == [0, 1, 2, 0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    "case",
    ROUND_ROBIN,
    ids=lambda case: case["id"],
)
def test_round_robin_equals_the_golden_schedules(case):
    inputs, expected = case["inputs"], case["expected"]
    sizes = tuple(inputs["sizes"])
    work = workload(
        sizes=sizes, batch_size=inputs["batch_size"], epochs=1, batches_per_step=len(sizes)
    )
    assert list(work.batches_per_pass) == expected["batches_per_full_pass"]
    for row in expected["per_epoch"]:
        counts = np.bincount(RoundRobin(work).batches(row["epoch"]), minlength=len(sizes))
        assert counts.tolist() == row["batches_per_task"]


def test_every_purpose_has_its_own_generator():
    drawn = {
        tuple(generator(*key).integers(0, 2**63, 2))
        for key in [(1, "a"), (1, "b"), (2, "a"), (1, "a", 0), (1, "a", 1), (1, "a", 1, 0)]
    }
    assert len(drawn) == 6


def test_annealed_has_as_many_batches_as_one_pass_over_all_tasks():
    batches = Annealed(workload()).batches(1)
    assert len(batches) == 27  # 13 + 4 + 8 = 25, rounded up to whole steps of 3


def test_annealed_draws_with_the_stated_chances():
    work = workload(steps_per_epoch=10_000)
    for epoch in (1, 4):
        shares = np.bincount(Annealed(work).batches(epoch), minlength=3) / 30_000
        np.testing.assert_allclose(
            shares, annealed_probabilities(work.sizes, epoch, work.epochs), atol=0.01
        )


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_keep_to_the_steps_asked_for_and_repeat_an_epoch(name):
    work = workload(steps_per_epoch=7)
    batches = SAMPLERS[name](work).batches(2)
    assert len(batches) == 21
    assert set(batches) <= {0, 1, 2}
    np.testing.assert_array_equal(batches, SAMPLERS[name](work).batches(2))


def test_seed_and_epoch_change_what_annealed_draws():
    draws = {
        tuple(Annealed(workload(seed=seed)).batches(epoch)) for seed in (1, 2) for epoch in (1, 2)
    }
    assert len(draws) == 4


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
