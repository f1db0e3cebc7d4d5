"""The verdict of a comparison: size, direction, which differences are clear, and of how many."""

import numpy as np
import pytest

from multitask.runs import Run
from reports.comparison import Comparison, Difference, compare
from reports.scored_systems import score_systems
from reports.systems import group_runs
from reports.verdict import by_task, verdicts
from tasks import CS224N


def difference(task, low, high):
    return Difference("multi", task, "accuracy", (low + high) / 2, np.linspace(low, high, 101), 80)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([("sst", 0.1, 0.2), ("sts", 0.1, 0.3)], "the difference is clear on sst and sts"),
        (
            [("sst", -0.2, 0.1), ("qqp", -0.3, -0.1), ("sts", -0.2, -0.1)],
            "clearly below on qqp and sts, no clear difference on sst",
        ),
        ([("sst", 0.1, 0.2), ("qqp", -0.2, -0.1)], "clearly above on sst, clearly below on qqp"),
        ([("sst", -0.1, 0.2)], "no clear difference on sst"),
    ],
)
def test_tasks_are_named_by_direction_and_clarity(found, expected):
    assert by_task([difference(*one) for one in found]) == expected


@pytest.fixture
def scored(make_run):
    named = [
        (name, Run(make_run(f"{name}{seed}", CS224N, skill, seed)))
        for name, skill in (("single", 0.4), ("multi", 0.3))
        for seed in (1, 2)
    ]
    return score_systems(group_runs(named))


def test_the_verdict_is_the_difference_of_the_overall_scores(scored):
    before, after = (np.mean(one.overall_values("overall")) for one in scored)
    (text,) = verdicts(compare(scored))
    assert text.startswith(f"multi is {100 * (before - after):.1f} points below single overall; ")
    assert text.endswith("; 2 seeds; n = 80 (sst), 80 (qqp), 80 (sts).")


def test_the_overall_difference_has_an_interval_narrower_than_its_tasks(scored):
    overall, *tasks = compare(scored).differences
    before, after = (np.mean(one.overall_values("overall")) for one in scored)
    assert overall.difference == pytest.approx(after - before)
    assert overall.interval[0] < overall.difference < overall.interval[1]
    assert np.ptp(overall.interval) < max(np.ptp(one.interval) for one in tasks)


def test_equal_systems_and_lone_ones_are_not_called_better(scored):
    single = scored[0]
    (text,) = verdicts(Comparison((single,), ()))
    assert "nothing to compare; 2 seeds" in text
    named = [(name, run) for name in ("a", "b") for run in single.system.runs]
    (text,) = verdicts(compare(score_systems(group_runs(named))))
    assert text.startswith("b scores as a does overall; no clear difference on sst, qqp and sts")
