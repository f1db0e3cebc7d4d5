"""Stored runs: the main metrics of their tasks."""

from pathlib import Path

import pytest

from multitask.settings.config import RunConfig
from multitask.stored_runs import StoredRun
from tasks import TASK_NAMES, build_task


@pytest.mark.parametrize("task", TASK_NAMES)
def test_the_main_metric_of_a_built_in_task_is_that_of_its_kind(task):
    run = StoredRun(Path("run"), {"tasks": [task]}, None)
    assert run.main_metric(task) == build_task(task).kind.main_metric


def test_the_score_of_pre_training_is_that_of_its_objective():
    dev = {"simcse": {"accuracy": 0.9}, "qqp": {"accuracy": 0.1}, "overall": 0.3}
    config = {"mode": "pretrain", "tasks": ["sst"], "auxiliary": ["qqp"]}
    assert StoredRun(Path("run"), config, {"dev": dev}).score == 0.9


def test_the_main_metric_of_an_own_task_is_that_of_its_type():
    stars = {"type": "regression", "train": "f.csv", "text": "t", "label": "y"}
    stars |= {"mean": 0.0, "deviation": 1.0}
    run = StoredRun(Path("run"), {"own_tasks": {"stars": stars}}, None)
    assert run.main_metric("stars") == "pearson"


def test_the_main_metric_of_a_users_class_is_the_first_known_one_of_its_figures():
    metrics = {"dev": {"stars": {"loss": 0.3, "pearson": 0.8, "accuracy": 0.9}}}
    assert StoredRun(Path("run"), {"tasks": ["stars"]}, metrics).main_metric("stars") == "pearson"
    assert StoredRun(Path("run"), {"tasks": ["stars"]}, None).main_metric("stars") == "accuracy"


@pytest.mark.parametrize(
    "settings",
    [
        {"tasks": ("sst",), "objective": "epo", "class_balanced": True, "batch_size": 20},
        {"tasks": ("sst", "sts"), "schedule": "individual"},
        {"tasks": ("sts",)},
    ],
)
def test_defaults_that_follow_from_other_settings_are_not_shown(settings):
    config = RunConfig(**settings)
    shown = StoredRun(Path("run"), config.to_json(), None).settings
    assert shown.keys() - {"precision"} == settings.keys() - {"tasks"}
