"""Pairs of runs with the same seed: their score, and its variance over examples."""

import numpy as np
import pytest
from scored_runs import scored_run

from common.errors import SettingsError, UserError
from multitask.settings.config import RunConfig
from multitask.storage.stored_runs import read_run
from studies.until_sure.seed_pairs import (
    check_comparable,
    dev_score,
    resampled_covariance,
    score_of,
    score_pair,
)
from tasks import CS224N, find_task
from tasks.metrics import overall_score
from tasks.predictions import read_scores, scores_name, write_scores

ALL = {task: find_task(task, {}) for task in CS224N}


def test_several_tasks_have_the_overall_score():
    score = dev_score(ALL)
    assert score.name == "overall"
    values = {"sst": 0.48, "qqp": 0.8, "sts": 0.7}
    assert score.of(values) == pytest.approx(100 * overall_score(0.48, 0.8, 0.7))


def test_one_task_has_its_own_metric_in_points():
    for score in (dev_score(ALL, "sts"), dev_score({"sts": ALL["sts"]}, "sts")):
        assert (score.name, score.weights) == ("sts pearson", {"sts": 100})
        assert score.of({"sts": 0.71}) == pytest.approx(71)
        assert score.resolution({"sts": 200}) == 0.5


def test_the_resolution_of_several_tasks():
    score = score_of({"sst": "accuracy", "sts": "pearson"})
    assert score.weights == {"sst": 50, "sts": 25}
    assert score.resolution({"sst": 100, "sts": 50}) == pytest.approx(0.5 * 2**0.5)


def test_an_unknown_score_is_refused():
    with pytest.raises(SettingsError, match="score: expected one of sst, qqp, sts, overall, found"):
        dev_score(ALL, "cola")
    with pytest.raises(SettingsError, match="score: expected one of sts, found 'overall'"):
        dev_score({"sts": ALL["sts"]}, "overall")


@pytest.fixture
def folders(tmp_path):
    """Folders of three seeds of A and B by seed and name."""
    skills = {"A": 0.35, "B": 0.25}
    return {
        seed: {
            name: scored_run(tmp_path / f"{name}{seed}", CS224N, skill, seed) for name, skill in it
        }
        for seed in (1, 2, 3)
        for it in [skills.items()]
    }


def test_a_pair_has_the_scores_and_the_seconds_of_its_runs(folders):
    score = dev_score(ALL)
    found = score_pair(folders[1], 1, score)
    table = read_scores(folders[1]["A"] / "predictions" / scores_name("sst", "dev"))
    accuracy = float(np.mean(table.values.argmax(1) == table.targets))
    assert found.metrics["A"]["sst"] == pytest.approx(accuracy)
    assert found.metrics.keys() == found.seconds.keys() == {"A", "B"}
    assert {task: count for task, (count, _) in found.examples.items()} == dict.fromkeys(CS224N, 80)
    difference = score.of(found.metrics["A"]) - score.of(found.metrics["B"])
    assert difference > 0
    assert found.resampled.mean() == pytest.approx(difference, abs=0.5)


def test_the_covariance_over_examples_is_that_of_the_examples_differences(folders):
    """Of an accuracy it is the covariance of right answers, divided by their number."""
    pairs = [score_pair(folders[seed], seed, dev_score(ALL, "sst")) for seed in folders]

    def right(run):
        table = read_scores(run / "predictions" / scores_name("sst", "dev"))
        return table.values.argmax(1) == table.targets

    each = [100.0 * right(one["A"]) - 100.0 * right(one["B"]) for one in folders.values()]
    expected = np.cov(each) / 80
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs(resampled_covariance(pairs) - expected).max() < 0.1 * size.max()


def test_swapped_runs_have_the_opposite_difference(folders):
    score = dev_score(ALL)
    one = score_pair(folders[1], 1, score)
    swapped = {"A": folders[1]["B"], "B": folders[1]["A"]}
    other = score_pair(swapped, 1, score)
    np.testing.assert_allclose(one.resampled, -other.resampled, atol=1e-9)


def test_runs_of_other_examples_are_refused(folders):
    file = folders[1]["B"] / "predictions" / scores_name("sst", "dev")
    write_scores(file, read_scores(file).rows(np.arange(40)))
    with pytest.raises(UserError, match=r"expected the 40 examples of .*B1, found 80"):
        score_pair(folders[1], 1, dev_score(ALL))
    assert read_run(folders[1]["A"]).main_tasks == CS224N


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": ("sst",)}, "tasks: expected a task in common, found sts and sst"),
        ({"data": "elsewhere"}, "data: expected the same in A and B, found 'sample' and 'else"),
        ({"dev_limit": 10}, "dev_limit: expected the same in A and B, found None and 10"),
        ({"protocol": "held-out"}, "protocol: expected the same in A and B, found 'files' and"),
        ({"objective": "simcse", "mode": "pretrain"}, "B: expected a run of tasks, found one of"),
    ],
)
def test_configurations_that_form_no_pairs_are_refused(changes, message):
    first = RunConfig(tasks=("sts",))
    other = RunConfig(**{"tasks": ("sts",), **changes})
    with pytest.raises(SettingsError, match=message):
        check_comparable(first, other)


def test_a_single_task_is_compared_with_it_among_others():
    assert check_comparable(RunConfig(tasks=("sts",)), RunConfig(tasks=("sst", "sts"))) == ("sts",)
