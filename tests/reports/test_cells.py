"""A finished run as one small JSON."""

import json
from dataclasses import replace

import pytest

from common.errors import RunError
from common.json_files import write_json
from multitask.config import RunConfig
from multitask.run_folder import Metrics
from reports.cells import cell

CONFIG = RunConfig(mode="single", tasks=("sts",))


def test_a_cell_has_the_whole_configuration_and_hides_the_datas_path(tmp_path):
    config = replace(CONFIG, data="/home/someone/cs224n", seed=3)
    write_json(tmp_path / "config.json", config.to_json())
    counts = {"best_epoch": 1, "epochs": 1, "steps": 9, "combiner_steps": {"sum": 9}}
    seconds = dict.fromkeys(("training_seconds", "examples_per_second", "seconds"), 1.5)
    metrics = {"dev": {"sts": {"pearson": 0.5}}, **counts, **seconds}
    assert metrics.keys() == Metrics.__annotations__.keys()
    write_json(tmp_path / "metrics.json", metrics)
    expected = {"config": config.to_json() | {"data": "cs224n"}} | metrics
    assert cell(tmp_path) == expected
    json.dumps(cell(tmp_path))


def test_an_unfinished_run_has_no_cell(tmp_path):
    with pytest.raises(RunError, match="expected a finished run"):
        cell(tmp_path)
