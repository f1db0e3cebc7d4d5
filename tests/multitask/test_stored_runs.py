"""Stored runs: the main metrics of their tasks."""

from pathlib import Path

import pytest

from multitask.settings.config import RunConfig
from multitask.stored_runs import StoredRun


def test_the_main_metrics_are_the_first_ones():
    dev = {"simcse": {"accuracy": 0.9}, "stars": {"pearson": 0.4, "mae": 1.0}, "overall": 0.3}
    run = StoredRun(Path("run"), {"tasks": ["sst"], "auxiliary": ["stars"]}, {"dev": dev})
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
