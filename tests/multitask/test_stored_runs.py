"""Stored runs: the main metrics of their tasks."""

import pytest

from multitask.runs import Run, other_than_defaults
from multitask.settings.config import RunConfig


def test_the_main_metrics_are_the_first_ones():
    dev = {"simcse": {"accuracy": 0.9}, "stars": {"pearson": 0.4, "mae": 1.0}, "overall": 0.3}
    run = Run("run")
    run.settings = {"tasks": ["sst"]}
    run.metrics = {"dev": dev}
    assert run.main_scores == {("simcse", "accuracy"): 0.9, ("stars", "pearson"): 0.4}
    assert run.score == pytest.approx((0.9 + 0.7) / 2)


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
    shown = other_than_defaults(config.to_json())
    assert shown.keys() - {"precision"} == settings.keys() - {"tasks"}
