"""Stored runs: the main metrics of their tasks."""

from pathlib import Path

import pytest

from multitask.settings.config import RunConfig
from multitask.stored_runs import StoredRun
from tasks import TASK_NAMES, build_task


@pytest.mark.parametrize("task", TASK_NAMES)
def test_the_main_metric_of_a_built_in_task_is_that_of_its_kind(task):
    metric = build_task(task).kind.main_metric
    run = StoredRun(Path("run"), {"tasks": [task]}, {"dev": {task: {"loss": 0.1, metric: 0.5}}})
    assert run.main_scores == {(task, metric): 0.5}


def test_the_main_metrics_of_objectives_and_own_tasks():
    stars = {"type": "regression", "train": "f.csv", "text": "t", "label": "y"}
    stars |= {"mean": 0.0, "deviation": 1.0}
    dev = {"simcse": {"accuracy": 0.9}, "stars": {"spearman": 0.2, "pearson": 0.4}, "overall": 0.3}
    config = {"tasks": ["sst"], "auxiliary": ["stars"], "own_tasks": {"stars": stars}}
    run = StoredRun(Path("run"), config, {"dev": dev})
    assert run.main_scores == {("simcse", "accuracy"): 0.9, ("stars", "pearson"): 0.4}
    assert run.score == 0.9


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
