"""Samplers: the paper's probabilities, lengths of epochs, seeding, and streams of batches."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multitask.methods import methods
from multitask.sampling import (
    Annealed,
    RoundRobin,
    Workload,
    annealed_probabilities,
    generator,
    power_probabilities,
)

SAMPLERS = methods("sampling")
FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "annealed_sampling.json").read_text())


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
    probabilities = annealed_probabilities(sizes, epoch, epochs)
    assert probabilities.sum() == pytest.approx(1)
    first = annealed_probabilities(sizes, 1, epochs)
    np.testing.assert_allclose(first, np.array(sizes) / sum(sizes))
    spread = lambda p: p.max() - p.min()  # noqa: E731
    assert spread(probabilities) <= spread(first) + 1e-12


def test_an_epoch_is_as_long_as_the_smallest_task_or_as_one_pass_over_all():
    batches = RoundRobin().batches(workload(), 1)
    assert batches.tolist() == [0, 1, 2] * 4  # 31 examples are 4 batches of 8
    assert len(Annealed().batches(workload(), 1)) == 27  # 13 + 4 + 8, up to whole steps of 3


def test_round_robin_goes_on_with_the_task_whose_turn_it_is():
    work = workload(steps_per_epoch=2, batches_per_step=2)
    drawn = [task for epoch in (1, 2) for task in RoundRobin().batches(work, epoch)]
    assert drawn == [0, 1, 2, 0, 1, 2, 0, 1]


@given(
    st.lists(st.integers(1, 10**7), min_size=1, max_size=8),
    st.floats(0, 1),
    st.none() | st.integers(1, 10**6),
)
def test_power_probabilities_keep_the_order_of_the_sizes(sizes, alpha, cap):
    probabilities = power_probabilities(sizes, alpha, cap)
    assert probabilities.sum() == pytest.approx(1)
    counts = np.minimum(sizes, cap or 10**7)
    expected = counts.astype(float) ** alpha / (counts.astype(float) ** alpha).sum()
    np.testing.assert_allclose(probabilities, expected)


THIRD = 4 ** (1 / 3)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("proportional", {}, [0.8, 0.2]),
        ("square-root", {}, [2 / 3, 1 / 3]),
        ("uniform", {}, [0.5, 0.5]),
        ("temperature", {"temperature": 3.0}, [THIRD / (1 + THIRD), 1 / (1 + THIRD)]),
        ("temperature", {"temperature": 1.0, "size_cap": 100}, [0.5, 0.5]),
        ("annealed", {}, None),
    ],
)
def test_drawn_samplers_keep_to_their_chances_in_every_epoch(name, settings, expected):
    work = workload(sizes=(400, 100), steps_per_epoch=10_000)
    for epoch in (1, 4):
        batches = SAMPLERS[name](**settings).batches(work, epoch)
        probabilities = expected or annealed_probabilities(work.sizes, epoch, work.epochs)
        shares = np.bincount(batches, minlength=2) / 30_000
        np.testing.assert_allclose(shares, probabilities, atol=0.01)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([3, 4], 5, 4), "expected 1 to 4, found 5"),
        (([], 1, 1), "expected positive numbers"),
        (([-1, 2], 1, 1), "expected positive numbers"),
        (([float("nan")], 1, 1), "expected positive numbers"),
    ],
)
def test_an_epoch_outside_the_run_and_sizes_that_are_no_counts_are_refused(arguments, expected):
    with pytest.raises(ValueError, match=expected):
        annealed_probabilities(*arguments)


def test_every_purpose_has_its_own_generator():
    drawn = {
        tuple(generator(*key).integers(0, 2**63, 2))
        for key in [(1, "a"), (1, "b"), (2, "a"), (1, "a", 0), (1, "a", 1), (1, "a", 1, 0)]
    }
    assert len(drawn) == 6


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_keep_to_the_steps_asked_for_and_repeat_an_epoch(name):
    work = workload(steps_per_epoch=7)
    batches = SAMPLERS[name]().batches(work, 2)
    assert len(batches) == 21
    assert set(batches) <= {0, 1, 2}
    np.testing.assert_array_equal(batches, SAMPLERS[name]().batches(work, 2))


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) - {"round-robin", "hybrid"}))
def test_seed_and_epoch_change_what_is_drawn(name):
    draws = {
        tuple(SAMPLERS[name]().batches(workload(seed=seed), epoch))
        for seed in (1, 2)
        for epoch in (1, 2)
    }
    assert len(draws) == 4
