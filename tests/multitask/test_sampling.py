"""Samplers and schedules: the papers' probabilities, golden plans, lengths of epochs, seeding."""

from dataclasses import replace

import numpy as np
import pytest
from golden_files import golden, golden_cases
from plain import built_in

from multitask.loop.batches import Plan
from multitask.sampling import (
    Annealed,
    FirstThenJoint,
    Hybrid,
    RoundRobin,
    Sampler,
    Schedule,
    Workload,
    annealed_probabilities,
)
from multitask.settings.config import RunConfig

SAMPLERS = built_in(Sampler)
GOLDEN = golden("annealed_sampling")


def workload(**changes):
    values = {"sizes": (100, 31, 64), "batch_size": 8, "batches_per_step": 3, "epochs": 4}
    return Workload(**(values | {"steps_per_epoch": None, "seed": 1} | changes))


@golden_cases("annealed_sampling")
def test_annealed_probabilities_equal_the_golden_vectors(case):
    inputs = case["inputs"]
    for row in case["expected"]["schedule"]:
        found = annealed_probabilities(inputs["sizes"], row["epoch"], inputs["epochs"])
        np.testing.assert_allclose(found, row["p"], **GOLDEN["tolerance"])


def test_an_epoch_is_as_long_as_the_smallest_task_or_as_one_pass_over_all():
    batches = RoundRobin().batches(workload(), 1)
    assert batches.tolist() == [0, 1, 2] * 4  # 31 examples are 4 batches of 8
    assert len(Annealed().batches(workload(), 1)) == 27  # 13 + 4 + 8, up to whole steps of 3
    # Round-robin continues the order of the previous epoch.
    work = workload(steps_per_epoch=2, batches_per_step=2)
    drawn = [task for epoch in (1, 2) for task in RoundRobin().batches(work, epoch)]
    assert drawn == [0, 1, 2, 0, 1, 2, 0, 1]


THIRD = 4 ** (1 / 3)


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("proportional", {}, [0.8, 0.2]),
        ("square-root", {}, [2 / 3, 1 / 3]),
        ("uniform", {}, [0.5, 0.5]),
        ("temperature", {"temperature": 3.0}, [THIRD / (1 + THIRD), 1 / (1 + THIRD)]),
        ("annealed", {}, None),
    ],
)
def test_random_samplers_follow_their_probabilities(name, settings, expected):
    work = workload(sizes=(400, 100), steps_per_epoch=10_000)
    for epoch in (1, 4):
        batches = SAMPLERS[name](**settings).batches(work, epoch)
        probabilities = expected or annealed_probabilities(work.sizes, epoch, work.epochs)
        shares = np.bincount(batches, minlength=2) / 30_000
        np.testing.assert_allclose(shares, probabilities, atol=0.01)


def test_an_epoch_outside_the_run_is_refused():
    with pytest.raises(ValueError, match="expected 1 to 4, found 5"):
        annealed_probabilities([3, 4], 5, 4)


@pytest.mark.parametrize("sampler", SAMPLERS.values())
def test_an_epoch_can_be_repeated_and_seed_and_epoch_change_what_is_drawn(sampler):
    keys = [(seed, epoch) for seed in (1, 2) for epoch in (1, 2)] * 2
    draws = {
        tuple(sampler().batches(workload(seed=seed, steps_per_epoch=7), epoch))
        for seed, epoch in keys
    }
    assert {len(batches) for batches in draws} == {21}
    assert len(draws) == (1 if issubclass(sampler, RoundRobin) else 4)


PLANS = golden("batch_schedules")
# Ours keeps the last, short batch of a pass, and has at least one epoch of the largest task.
CASES = [case for case in PLANS["cases"] if not case["inputs"]["drop_last"]]
NAMES = ("sst", "qqp", "sts")


def plan(sizes=(100, 310, 64), **changes):
    values = {"mode": "multitask", "tasks": NAMES, "batch_size": 8}
    return Plan(RunConfig(**(values | changes)), sizes)


def lengths(steps):
    return {len(step) for step in steps}


@pytest.mark.parametrize("schedule", ["joint", "individual"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_round_robin_and_hybrid_equal_the_golden_plans(case, schedule):
    inputs, expected = case["inputs"], case["expected"]
    hybrid = inputs["n_max_data_epochs"] > 0
    found = plan(
        inputs["sizes"],
        batch_size=inputs["batch_size"],
        epochs=inputs["epochs"],
        sampling=Hybrid(first_epochs=inputs["n_max_data_epochs"]) if hybrid else "round-robin",
        schedule=schedule,
    )
    assert list(found.work.batches_per_pass) == expected["batches_per_full_pass"]
    for row in expected["per_epoch"]:
        steps = found.steps(row["epoch"])
        assert len(steps) == row[f"optimizer_steps_{schedule}"]
        counts = np.bincount(np.concatenate(steps), minlength=len(inputs["sizes"]))
        assert counts.tolist() == row["batches_per_task"]


@pytest.mark.parametrize("sampling", built_in(Sampler))
@pytest.mark.parametrize("schedule", built_in(Schedule))
def test_every_sampler_works_with_every_schedule(schedule, sampling):
    found = plan(sampling=sampling, schedule=schedule, epochs=3, steps_per_epoch=7)
    for epoch in (1, 2, 3):
        steps = found.steps(epoch)
        assert len(steps) == 7
        assert {task for step in steps for task in step} <= {0, 1, 2}
    expected = 1 if schedule == "individual" else 3
    assert lengths(found.steps(3)) == {expected}


@pytest.mark.parametrize(("first", "index"), [(None, 1), ("sst", 0), ("sts", 2)])
def test_the_first_epochs_train_one_task(first, index):
    found = plan(schedule=FirstThenJoint(first, 2), epochs=4)
    for epoch in (1, 2):
        assert lengths(found.steps(epoch)) == {1}
        assert set(np.concatenate(found.steps(epoch))) == {index}
        assert len(found.steps(epoch)) == found.work.batches_per_pass[index]
    for epoch in (3, 4):
        assert lengths(found.steps(epoch)) == {3}
        assert set(np.concatenate(found.steps(epoch))) == {0, 1, 2}


@pytest.mark.parametrize(
    ("role", "name"), [("sampling", "hybrid"), ("schedule", "first-then-joint")]
)
def test_the_largest_task_is_the_largest_before_any_limit(role, name):
    config = RunConfig(tasks=NAMES, limit=64, **{role: name})
    limited = (64, 64, 64)
    assert Plan(config, limited, (100, 310, 64)).first_task_index == 1
    assert Plan(config, limited).first_task_index == 0
    named = replace(config, **{role: replace(getattr(config, role), first_task="sts")})
    assert Plan(named, limited).first_task_index == 2


@pytest.mark.parametrize("method", [{"sampling": "hybrid"}, {"schedule": "first-then-joint"}])
def test_by_default_one_of_several_epochs_trains_one_task(method):
    for epochs, expected in ((1, 0), (2, 1)):
        config = RunConfig(tasks=("sst", "qqp", "sts"), epochs=epochs, **method)
        assert Plan(config, (64, 310, 64)).first_epochs == expected


def test_a_joint_epoch_ends_with_a_short_step_rather_than_losing_batches():
    steps = plan(batches_per_step=2).steps(1)
    assert [len(step) for step in steps] == [2] * 12  # 8 batches of each of 3 tasks
    assert len(plan(batches_per_step=5).steps(1)[-1]) == 4
