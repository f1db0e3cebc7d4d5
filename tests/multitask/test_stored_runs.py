"""Stored runs: the main metrics of their tasks."""

import pytest

from common.errors import RunError
from common.files import write_json
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("tasks", one) for one in (5, [5], [{"type": "number"}])),
        *(("seed", one) for one in ([1], "x")),
        *(("combiner", 5), ("regularizers", True), ("members", {"sst": 5}), ("init", [])),
        *(("dev", one) for one in ({"sst": {"accuracy": "x"}}, {"sst": {}}, [])),
        *(("training_seconds", []), ("combiner_steps", {"summed": None}), ("conflicts", 3)),
    ],
)
def test_a_value_of_another_type_in_a_file_is_refused(key, value, tmp_path):
    write_json(tmp_path / "config.json", RunConfig(tasks=("sst",)).to_json() | {key: value})
    write_json(tmp_path / "metrics.json", {"dev": {}, key: value})
    with pytest.raises(RunError, match=f"{key}: .*; restore the file, or train again"):
        _ = Run(tmp_path).metrics
