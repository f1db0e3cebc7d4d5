"""Runs with --calibrate: the same training, temperatures fitted on dev, predictions, exports."""

import numpy as np
import pytest
from run_files import metrics, same, weights

import cli
from multitask.runs import CALIBRATION, Run
from serving import MultiTaskModel, load
from serving.export import export
from tasks.calibration import (
    calibration_error,
    fit_temperature,
    label_decisions,
    scaled,
    temperature_scaled,
)
from tasks.predictions import read_scores, scores_name

ROW = ("a film to love", "the film was bad")


@pytest.fixture(scope="module")
def tags(tmp_path_factory):
    """An own task of several labels with 40 dev examples."""
    folder = tmp_path_factory.mktemp("tags")
    for split, count in (("train", 60), ("dev", 40)):
        rows = [f"{split} text {n},{('', 'red', 'blue', 'blue|red')[n % 4]}" for n in range(count)]
        (folder / f"{split}.csv").write_text("\n".join(["text,tags", *rows]))
    return ("--data-file", str(folder), "--text", "text", "--labels", "tags:type=multi-label")


@pytest.fixture(scope="module")
def command(small, tags):
    return [
        *("--mode", "multitask", "--encoder", "tiny", "--data", str(small), "--epochs", "2"),
        *("--tasks", "sst", "qqp", "sts", *tags, "--limit", "16"),
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
    measured, stored = metrics(calibrated)["calibration"], Run(calibrated).read(CALIBRATION)
    assert set(measured) == set(stored) == {"sst", "qqp", "tags"}  # not of numbers
    for name, temperature in stored.items():
        table = read_scores(calibrated / "predictions" / scores_name(name, "dev"))
        values, targets = table.values, table.targets
        if name == "tags":
            values, targets = label_decisions(values), targets.reshape(-1)
        assert temperature == fit_temperature(values, targets)
        after = temperature_scaled(values, temperature)
        assert measured[name] == {
            "temperature": temperature,
            "ece_before": calibration_error(values, targets),
            "ece_after": calibration_error(after, targets),
        }
        assert f"{name}: temperature {temperature:.3f}, expected calibration" in printed


def test_an_export_is_calibrated_and_its_card_says_how_well(calibrated, tmp_path):
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
            several = model.tasks_by_name[name].kind.labels is not None
            expected = scaled(plain[name].probabilities, model.temperatures[name], several)
            np.testing.assert_allclose(one.probabilities, expected, rtol=1e-6)
    figures = metrics(calibrated)["calibration"]["sst"].values()
    row = " | ".join(f"{value:.3f}" for value in figures)
    assert f"| sst | {row} |" in (folder / "README.md").read_text()
