"""Samplers and schedules: the papers' probabilities, golden plans, lengths of epochs, seeding."""

import numpy as np
import pytest
from golden_files import golden, golden_cases
from hypothesis import given
from hypothesis import strategies as st
from plain import built_in

from common.errors import RunError, SettingsError
from multitask.loop.batches import Plan, build_plan
from multitask.loop.progress import Progress
from multitask.sampling import (
    Adaptive,
    Annealed,
    EpochFigures,
    FirstThenJoint,
    Hybrid,
    RoundRobin,
    Sampler,
    Schedule,
    Workload,
    annealed_probabilities,
    power_probabilities,
)
from multitask.settings.config import RunConfig

SAMPLERS = built_in(Sampler)
GOLDEN = golden("annealed_sampling")


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


@golden_cases("annealed_sampling")
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
    # Round-robin continues the order of the previous epoch.
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
    return build_plan(RunConfig(**(values | changes)), sizes)


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
    assert build_plan(config, limited, (100, 310, 64)).first_task_index == 1
    with pytest.raises(SettingsError, match=r"first_task: name the .*: sst 64, qqp 64, sts 64"):
        build_plan(config, limited)
    named = config.changed(**{role: {"first_task": "sts"}})
    assert build_plan(named, limited).first_task_index == 2


@pytest.mark.parametrize("method", [{"sampling": "hybrid"}, {"schedule": "first-then-joint"}])
def test_by_default_one_of_several_epochs_trains_one_task(method):
    for epochs, expected in ((1, 0), (2, 1)):
        config = RunConfig(tasks=("sst", "qqp", "sts"), epochs=epochs, **method)
        assert build_plan(config, (64, 310, 64)).first_epochs == expected


def test_annealing_begins_after_the_first_epochs():
    first = FirstThenJoint(first_epochs=1)
    found = plan(sampling="annealed", epochs=3, steps_per_epoch=5000, schedule=first)
    for epoch in (2, 3):
        shares = np.bincount(np.concatenate(found.steps(epoch)), minlength=3) / 15_000
        probabilities = annealed_probabilities((100, 310, 64), epoch - 1, 2)
        np.testing.assert_allclose(shares, probabilities, atol=0.02)


def test_a_joint_epoch_ends_with_a_short_step_rather_than_losing_batches():
    steps = plan(batches_per_step=2).steps(1)
    assert [len(step) for step in steps] == [2] * 12  # 8 batches of each of 3 tasks
    assert len(plan(batches_per_step=5).steps(1)[-1]) == 4


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"probabilities": [0.5, 0.1, 0.1]}, "3 probabilities with sum 1"),
        ({"probabilities": [np.nan, 0.5, 0.5]}, "3 probabilities with sum 1"),
        ({"batches": [0, 3]}, "batches as whole numbers from 0 to 2"),
        ({"batches": []}, "batches as whole numbers from 0 to 2"),
    ],
    ids=str,
)
def test_what_a_sampler_of_a_user_draws_is_checked(wrong, line):
    class Own(Sampler, name="own"):
        pass

    ((name, value),) = wrong.items()
    setattr(Own, name, lambda self, work, epoch, history: value)
    with pytest.raises(RunError, match=f"sampler own: expected {line}"):
        Plan(workload(), Own()).steps(1)


def test_adaptive_sampling_follows_the_last_dev_scores():
    work = workload(sizes=(100, 100, 100))
    unknown = EpochFigures(np.ones(3), np.full(3, np.nan))
    known = EpochFigures(np.ones(3), np.array([0.9, 0.4, np.nan]))
    for history in ((), [unknown]):
        np.testing.assert_allclose(Adaptive().probabilities(work, 1, history), 1 / 3)
    found = Adaptive().probabilities(work, 3, [known, unknown])
    weights = 1 / (np.array([0.9, 0.4, 0.65]) + 0.1)
    np.testing.assert_allclose(found, weights / weights.sum())


def test_progress_keeps_the_mean_losses_and_the_dev_scores_of_each_epoch():
    progress = Progress()
    progress.add_losses({"sst": 3.0, "qqp/a": 1.0, "qqp/b": 0.5}, {"sst": 2, "qqp": 1})
    progress.add_losses({"sst": 1.0}, {"sst": 1})
    progress.epoch = 1
    progress.add_score(0.5, {"sst": {"accuracy": 0.4}, "sts": {"pearson": 0.0}}, keep_last=False)
    metrics = {"sst": "accuracy", "qqp": "accuracy", "sts": "pearson"}
    (found,) = progress.figures(metrics)
    np.testing.assert_allclose(found.losses, [4 / 3, 1.5, np.nan])
    np.testing.assert_allclose(found.scores, [0.4, np.nan, 0.5])
