"""Runs with --calibrate: the same training, temperatures fitted on dev, predictions, exports."""

import numpy as np
import pytest
from run_files import metrics, same, weights

import cli
from multitask.runs import CALIBRATION, Run
from serving import MultiTaskModel, load
from serving.export import export
from tasks.calibration import fit_temperature, temperature_scaled
from tasks.predictions import read_scores, scores_name

ROW = ("a film to love", "the film was bad")


@pytest.fixture(scope="module")
def command(small):
    return [
        *("--mode", "multitask", "--encoder", "tiny", "--data", str(small), "--epochs", "2"),
        *("--tasks", "sst", "qqp", "sts", "--limit", "16"),
    ]


@pytest.fixture(scope="module")
def calibrated(command, tmp_path_factory):
    """A finished run; read only."""
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    assert cli.main([*command, "--calibrate", "--output", str(folder)]) == 0
    return folder


def test_all_but_the_calibration_is_that_of_a_run_without_it(command, calibrated, run_ok, tmp_path):
    plain = tmp_path / "plain"
    run_ok(*command, "--output", plain)
    for file in ("model", "heads"):
        assert same(weights(plain, file), weights(calibrated, file))
    assert metrics(plain)["dev"] == metrics(calibrated)["dev"]
    assert "calibration" not in metrics(plain)
    assert not (plain / CALIBRATION).exists()
    for file in (calibrated / "predictions").iterdir():
        assert file.read_bytes() == (plain / "predictions" / file.name).read_bytes()


def test_temperatures_are_those_of_the_stored_scores_and_are_printed(run_ok, command, calibrated):
    printed = run_ok(*command, "--calibrate", "--output", calibrated).stdout
    stored = Run(calibrated).read(CALIBRATION)
    assert set(stored) == {"sst", "qqp"}  # not of numbers
    assert metrics(calibrated)["calibration"] == stored
    for name, temperature in stored.items():
        table = read_scores(calibrated / "predictions" / scores_name(name, "dev"))
        assert temperature == fit_temperature(table.values, table.targets)
        assert f"{name}: temperature {temperature:.3f}, fitted on dev" in printed


def test_an_export_is_calibrated(calibrated, tmp_path):
    folder = tmp_path / "export"
    export(calibrated, folder, "transformers")
    model = load(calibrated, "cpu")
    plain = MultiTaskModel(model.model, model.config).predict([ROW])
    found = load(folder, "cpu").predict([ROW])
    for name, one in model.predict([ROW]).items():
        np.testing.assert_array_equal(found[name].probabilities, one.probabilities)
        assert (found[name].labels, name in model.temperatures) == (
            plain[name].labels,
            name != "sts",
        )
        if name != "sts":
            expected = temperature_scaled(plain[name].probabilities, model.temperatures[name])
            np.testing.assert_allclose(one.probabilities, expected, rtol=1e-6)
