"""Runs with --calibrate from the command line: training, resuming, predictions, exports."""

import numpy as np
import pytest
from run_files import metrics

import cli
from serving import MultiTaskModel
from serving.export import export
from tasks.calibration import scaled

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
        *("--tasks", "sst", "qqp", "sts", *tags, "--calibrate", "--limit", "16"),
    ]


@pytest.fixture(scope="module")
def calibrated(command, tmp_path_factory):
    """A finished run; read only."""
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    assert cli.main([*command, "--output", str(folder)]) == 0
    return folder


def test_a_run_prints_its_temperatures(run_ok, command, calibrated):
    printed = run_ok(*command, "--output", calibrated).stdout
    found = metrics(calibrated)["calibration"]
    assert set(found) == {"sst", "qqp", "tags"}
    for name, one in found.items():
        assert f"{name}: temperature {one['temperature']:.3f}, expected calibration" in printed


def test_an_export_is_calibrated_and_its_card_says_how_well(calibrated, tmp_path):
    folder = tmp_path / "export"
    export(calibrated, folder, "transformers")
    model = MultiTaskModel.load(calibrated, "cpu")
    plain = MultiTaskModel(model.model, model.config).predict([ROW])
    found = MultiTaskModel.load(folder, "cpu").predict([ROW])
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
