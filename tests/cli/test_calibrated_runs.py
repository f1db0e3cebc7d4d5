"""Runs with --calibrate from the command line: training, resuming, predict, export, the report."""

import csv
import io
import json
import re
import signal

import numpy as np
import pytest
from run_files import metrics, predictions

import cli
from common.errors import SettingsError
from multitask.calibration import read_calibration
from multitask.loop.trainer import Trainer
from serving import MultiTaskModel
from serving.export import export
from tasks.calibration import conformal_quantile

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


def test_a_run_says_what_its_scores_are_of(run_ok, command, calibrated):
    printed = run_ok(*command, "--output", calibrated).stdout
    assert re.search(r"^task +scored +calibrate +temperature +ECE before .* for 90%", printed, re.M)
    for name, found in metrics(calibrated)["calibration"].items():
        row = next(re.finditer(rf"^{name} +27 +13 +(.*)$", printed, re.M))[1].split()
        assert f"{found['coverage']:.1%}" in row
        assert ("temperature" in found) == (name != "sts")
        assert ("micro_f1_at_thresholds" in found) == (name == "tags")
        assert len(row) == {"sts": 2, "tags": 7}.get(name, 5)
    assert "those of the scored examples; the others, a third of dev, calibrate" in printed
    assert len(predictions(calibrated, "sst", "dev")) == 40


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
    assert read_calibration(folder) == {}
    run_ok(*command, "--output", folder, "--resume")
    for key in ("dev", "calibration"):
        assert metrics(folder)[key] == metrics(calibrated)[key]
    name = "calibration.json"
    assert (folder / name).read_bytes() == (calibrated / name).read_bytes()


def test_probabilities_are_scaled_and_labels_are_those_above_their_thresholds(model):
    found = model.predict([ROW] * 2)
    plain = MultiTaskModel(model.model, model.config).predict([ROW] * 2)
    for name, task in model.tasks_by_name.items():
        if (thresholds := model.calibrations[name].thresholds) is not None:
            values = plain[name].probabilities > thresholds
            assert found[name].labels == [task.output.show(one) for one in values]
            np.testing.assert_array_equal(found[name].values, values)
        else:
            np.testing.assert_array_equal(found[name].values, plain[name].values)
            assert found[name].labels == plain[name].labels
        assert found[name].sets is found[name].intervals is None
        temperature = model.calibrations[name].temperature
        if name == "sts":
            assert temperature is found[name].probabilities is None
            continue
        expected = task.kind.calibrator.scaled(plain[name].probabilities, temperature)
        np.testing.assert_allclose(found[name].probabilities, expected, rtol=1e-6)
        assert not np.allclose(found[name].probabilities, plain[name].probabilities, rtol=1e-3)


def test_sets_hold_what_is_probable_enough_and_intervals_stay_on_the_scale(model):
    found = model.predict([ROW] * 2, coverage=0.8)
    plain = MultiTaskModel(model.model, model.config).predict([ROW])
    for name in model.tasks:
        quantile = conformal_quantile(model.calibrations[name].nonconformity, 0.8)
        if name == "sts":
            low, high = found[name].intervals[0]
            value = plain[name].values[0]
            assert low == pytest.approx(max(0, value - quantile), abs=1e-5)
            assert high == pytest.approx(min(5, value + quantile), abs=1e-5)
        else:
            shares = plain[name].probabilities[0]
            assert found[name].sets[0].tolist() == [1 - float(p) <= quantile for p in shares]
    with pytest.raises(ValueError, match=r"above 0 and below 1, found '0\.9'"):
        model.predict(["a"], coverage="0.9")
    with pytest.raises(ValueError, match="coverage: expected a number above 0 and below 1"):
        model.predict([ROW], coverage=1.0)


def table(text):
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


def test_predict_adds_columns_for_a_coverage(calibrated, model, run_ok, stdin):
    stdin(("\t".join(ROW) + "\n\tx\n").encode())
    first, empty = table(
        run_ok("--mode", "predict", "--run", calibrated, "--coverage", "0.8").stdout
    )
    assert list(first)[2:] == [
        *("sst", "sst set", "qqp", "qqp set", "sts", "sts low", "sts high", "tags", "tags set")
    ]
    found = model.predict([ROW], coverage=0.8)
    for name in ("sst", "qqp", "tags"):
        inside = zip(found[name].class_names, found[name].sets[0], strict=True)
        assert first[f"{name} set"] == "|".join(title for title, held in inside if held)
    assert 0 <= float(first["sts low"]) <= float(first["sts"]) <= float(first["sts high"]) <= 5
    assert not any(list(empty.values())[2:])


def test_a_coverage_that_cannot_be_given_is_refused(
    calibrated, model, finished, error_line, run, stdin, tmp_path
):
    predict = ("--mode", "predict", "--run", calibrated)
    stdin(b"a\n")
    line = error_line(2, *predict, "--coverage", "0.95")
    assert "--coverage 0.95: sst: expected 19 calibration examples or more, found 13" in line
    stdin(b"a\n")
    line = error_line(2, "--mode", "predict", "--run", finished[0], "--coverage", "0.9")
    assert "by training with --calibrate, found sst" in line
    partly = MultiTaskModel(model.model, model.config, {"sts": model.calibrations["sts"]})
    with pytest.raises(SettingsError, match="coverage: expected calibrated tasks, sts, found sst"):
        partly.predict([ROW], coverage=0.8)
    for value in ("1", "0", "90"):
        assert "above 0 and below 1" in run(*predict, "--coverage", value).stderr
    glue = ("--input", "x.tsv", "--column", "a", "--output", tmp_path / "y.tsv", "--glue")
    assert "--glue and --coverage" in run(*predict, *glue, "--coverage", "0.9").stderr


def test_an_export_is_calibrated_and_its_card_says_how_well(calibrated, model, tmp_path):
    folder = tmp_path / "export"
    for overwrite in (False, True):
        export(calibrated, folder, "transformers", overwrite)
    found = MultiTaskModel.load(folder, "cpu").predict([ROW], coverage=0.8)
    for name, one in model.predict([ROW], coverage=0.8).items():
        for key in ("sets", "intervals", "probabilities"):
            np.testing.assert_array_equal(getattr(found[name], key), getattr(one, key))
    card = (folder / "README.md").read_text()
    measured = metrics(calibrated)["calibration"]["sst"]
    row = re.search(r"^\| sst \| 27 \| 13 \|.*$", card, re.M)[0]
    assert f"| {measured['ece_after']:.3f} |" in row
    assert f"| {measured['coverage']:.1%} |" in row


def test_an_export_of_one_task_has_its_calibration_only(small, run_ok, tmp_path):
    folder = tmp_path / "run"
    run_ok(
        *("--mode", "multitask", "--tasks", "sst", "sts", "--encoder", "tiny", "--data", small),
        *("--epochs", "1", "--limit", "8", "--branch", "top-1", "--calibrate", "--output", folder),
    )
    export(folder, tmp_path / "export", "transformers", task="sst")
    assert set(read_calibration(folder)) == {"sst", "sts"}
    assert set(read_calibration(tmp_path / "export")) == {"sst"}
    card = (tmp_path / "export" / "README.md").read_text()
    assert "| sst | 27 | 13 |" in card
    assert "| sts | 27 | 13 |" not in card


def test_an_ensemble_leaves_the_marked_examples_out(calibrated, run_ok, tmp_path):
    folder = tmp_path / "average"
    runs = ("--method", "average", "--runs", f"sst={calibrated}", "--output", folder)
    printed = run_ok("--mode", "ensemble", *runs).stdout
    assert "13 dev examples selected or calibrated members" in printed
    found = json.loads((folder / "metrics.json").read_text())
    assert found["dev"]["sst"] == pytest.approx(metrics(calibrated)["dev"]["sst"])
    assert read_calibration(folder) == {}
