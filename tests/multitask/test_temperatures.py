"""The temperatures of a run: fitted on dev, stored, and without any part in the training."""

import json

import pytest
from plain import kept_weights

from multitask.run import complete
from multitask.runs import CALIBRATION, Run
from multitask.settings.config import RunConfig
from tasks import CS224N
from tasks.calibration import calibration_error, fit_temperature, temperature_scaled
from tasks.predictions import read_scores, scores_name

CONFIG = RunConfig(
    tasks=CS224N,
    encoder="tiny",
    limit=24,
    dev_limit=40,
    test_limit=4,
    epochs=2,
    steps_per_epoch=2,
    keep="last",
    calibrate=True,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    complete(CONFIG, folder)
    return folder


def test_all_but_the_calibration_is_that_of_a_run_without_it(run, tmp_path):
    plain = tmp_path / "plain"
    metrics = complete(CONFIG.changed(calibrate=False), plain)
    assert kept_weights(run) == kept_weights(plain)
    assert metrics["dev"] == json.loads((run / "metrics.json").read_text())["dev"]
    assert "calibration" not in metrics
    assert not (plain / CALIBRATION).exists()
    for file in (run / "predictions").iterdir():
        assert file.read_bytes() == (plain / "predictions" / file.name).read_bytes()


def test_temperatures_are_those_of_the_stored_scores(run):
    measured = json.loads((run / "metrics.json").read_text())["calibration"]
    stored = Run(run).read(CALIBRATION)
    assert set(measured) == set(stored) == {"sst", "qqp"}  # not of numbers
    for name, temperature in stored.items():
        table = read_scores(run / "predictions" / scores_name(name, "dev"))
        assert temperature == fit_temperature(table.values, table.targets)
        scaled = temperature_scaled(table.values, temperature)
        assert measured[name] == {
            "temperature": temperature,
            "ece_before": calibration_error(table.values, table.targets),
            "ece_after": calibration_error(scaled, table.targets),
        }
