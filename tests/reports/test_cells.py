"""A finished run as one small JSON."""

import json
from dataclasses import replace

import pytest

from common.json_files import write_json
from multitask.config import RunConfig
from multitask.errors import RunError
from multitask.run_folder import Metrics
from reports.cells import cell
from tasks.described import Described

CONFIG = RunConfig(mode="single", tasks=("sts",))
OWN = Described("mine", "similarity", "m.csv", ("t", "u"), "y").to_json()


@pytest.mark.parametrize(
    ("settings", "stored"),
    [
        ({"data": "/home/someone/cs224n"}, {"data": "cs224n"}),
        ({"encoder": "someone/a-model-of-the-hub"}, {}),
        (
            {"tasks": ("mine",), "own_tasks": {"mine": OWN | {"train": "/home/someone/m.csv"}}},
            {"own_tasks": {"mine": OWN | {"train": "m.csv"}}},
        ),
    ],
    ids=["data", "hub", "own tasks"],
)
def test_a_cell_has_the_whole_configuration_without_paths_of_the_machine(
    tmp_path, settings, stored
):
    config = replace(CONFIG, seed=3, **settings)
    write_json(tmp_path / "config.json", config.to_json())
    counts = {"best_epoch": 1, "epochs": 1, "steps": 9, "combiner_steps": {"sum": 9}}
    seconds = dict.fromkeys(("training_seconds", "examples_per_second", "seconds"), 1.5)
    metrics = {"dev": {"sts": {"pearson": 0.5}}, **counts, **seconds}
    assert metrics.keys() == Metrics.__annotations__.keys()
    write_json(tmp_path / "metrics.json", metrics)
    assert cell(tmp_path) == {"config": config.to_json() | stored} | metrics
    json.dumps(cell(tmp_path))


def test_a_local_encoder_is_stored_by_its_name(tmp_path):
    (tmp_path / "encoder").mkdir()
    config = replace(CONFIG, encoder=str(tmp_path / "encoder"))
    write_json(tmp_path / "config.json", config.to_json())
    write_json(tmp_path / "metrics.json", {"dev": {}})
    assert cell(tmp_path)["config"]["encoder"] == "encoder"


def test_an_unfinished_run_has_no_cell(tmp_path):
    with pytest.raises(RunError, match="expected a finished run"):
        cell(tmp_path)
