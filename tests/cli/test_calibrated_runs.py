"""Runs with --calibrate from the command line: training, resuming, predictions, exports."""

import re
import signal

import numpy as np
import pytest
from run_files import metrics

import cli
from multitask.loop.trainer import Trainer
from multitask.run_folder import CALIBRATION, RunFolder
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
    return f"tags={folder}/train.csv:type=multi-label,dev={folder}/dev.csv,text=text,label=tags"


@pytest.fixture(scope="module")
def command(small, tags):
    return [
        *("--mode", "multitask", "--encoder", "tiny", "--data", str(small), "--epochs", "2"),
        *("--tasks", "sst", "qqp", "sts", "--task", tags, "--calibrate", "--limit", "16"),
    ]


@pytest.fixture(scope="module")
def calibrated(command, tmp_path_factory):
    """A finished run; read only."""
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    assert cli.main([*command, "--output", str(folder)]) == 0
    return folder


@pytest.fixture
def model(calibrated):
    return MultiTaskModel.load(calibrated, "cpu")


def test_a_run_prints_its_temperatures(run_ok, command, calibrated):
    printed = run_ok(*command, "--output", calibrated).stdout
    assert re.search(r"^task +temperature +ECE before +ECE after$", printed, re.MULTILINE)
    found = metrics(calibrated)["calibration"]
    assert set(found) == {"sst", "qqp", "tags"}
    for name, one in found.items():
        figures = " +".join(f"{value:.3f}" for value in one.values())
        assert re.search(rf"^{name} +{figures}$", printed, re.MULTILINE)


def test_a_resumed_run_has_the_same_calibration(
    run, run_ok, command, calibrated, tmp_path, monkeypatch
):
    folder, fit = tmp_path / "run", Trainer.fit

    def interrupted(self):
        fit(self)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "fit", interrupted)
        assert run(*command, "--output", folder).returncode == 130
    assert RunFolder(folder).read(CALIBRATION) == {}
    run_ok(*command, "--output", folder, "--resume")
    for key in ("dev", "calibration"):
        assert metrics(folder)[key] == metrics(calibrated)[key]
    name = "calibration.json"
    assert (folder / name).read_bytes() == (calibrated / name).read_bytes()


def test_probabilities_are_scaled_and_labels_stay(model):
    found = model.predict([ROW] * 2)
    plain = MultiTaskModel(model.model, model.config).predict([ROW] * 2)
    for name, task in model.tasks_by_name.items():
        np.testing.assert_array_equal(found[name].values, plain[name].values)
        assert found[name].labels == plain[name].labels
        if name == "sts":
            assert name not in model.temperatures
            assert found[name].probabilities is None
            continue
        shares = plain[name].probabilities
        expected = scaled(shares, model.temperatures[name], task.kind.labels is not None)
        np.testing.assert_allclose(found[name].probabilities, expected, rtol=1e-6)
        assert not np.allclose(found[name].probabilities, shares, rtol=1e-3)


def test_an_export_is_calibrated_and_its_card_says_how_well(calibrated, model, tmp_path):
    folder = tmp_path / "export"
    for overwrite in (False, True):
        export(calibrated, folder, "transformers", overwrite)
    found = MultiTaskModel.load(folder, "cpu").predict([ROW])
    for name, one in model.predict([ROW]).items():
        np.testing.assert_array_equal(found[name].probabilities, one.probabilities)
    figures = metrics(calibrated)["calibration"]["sst"].values()
    row = " | ".join(f"{value:.3f}" for value in figures)
    assert f"| sst | {row} |" in (folder / "README.md").read_text()
