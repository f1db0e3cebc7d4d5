"""Calibration examples of a run: how they are drawn, and that they count nowhere else."""

import json
from dataclasses import replace

import numpy as np
import pytest

from common.errors import RunError, SettingsError
from common.json_files import write_json
from multitask.calibration import calibrate, read_calibration, with_calibration_examples
from multitask.loop.evaluation import evaluate
from multitask.run import complete
from multitask.settings.config import RunConfig
from multitask.storage.run_folder import CALIBRATION
from multitask.storage.stored_runs import read_run
from tasks import CS224N, build_task
from tasks.calibration import report
from tasks.kinds import Kind
from tasks.predictions import read_scores, scores_name

CONFIG = RunConfig(
    tasks=("mrpc", *CS224N),
    auxiliary=("mrpc",),
    encoder="tiny",
    limit=24,
    dev_limit=40,
    test_limit=4,
    epochs=2,
    steps_per_epoch=2,
    keep="last",
    linear="mkl",
    calibrate=True,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    complete(CONFIG, folder)
    return folder


@pytest.fixture
def dev(make_trainer):
    """The dev split of sst, 100 examples, none of them marked."""
    return make_trainer(only="sst").splits["sst"]["dev"]


SST = build_task("sst")


def test_a_third_of_dev_is_marked_always_the_same(dev):
    found = with_calibration_examples(SST, dev)
    assert found.calibrates.sum() == 33
    assert len(found.scored_rows) == len(found.scored) == 67
    assert not found.calibrates[found.scored_rows].any()
    again = with_calibration_examples(SST, dev)
    np.testing.assert_array_equal(found.calibrates, again.calibrates)
    assert dev.scored is dev.examples


def test_equal_texts_are_on_one_side(dev):
    rows = np.arange(100) // 4  # each text four times
    tokens = (dev.tokens[0].select(rows),)
    found = with_calibration_examples(SST, replace(dev, tokens=tokens))
    marked = found.calibrates.reshape(25, 4)
    assert (marked.all(1) | ~marked.any(1)).all()
    assert 9 <= marked.sum() <= 33


def test_the_marked_examples_have_no_part_in_the_metrics(make_trainer):
    trainer = make_trainer(only="sst", calibrate=True)
    dev = trainer.splits["sst"]["dev"]
    found, scores = trainer.evaluate()
    assert len(scores["sst"]) == 100
    for marked in (True, False):
        targets = dev.examples.targets.copy()
        rows = dev.calibrates == marked
        targets[rows] = (targets[rows] + 1) % 5
        other = replace(dev, examples=replace(dev.examples, targets=targets))
        metrics, _ = evaluate(trainer.model, trainer.tasks, {"sst": other})
        assert (metrics == found) == marked


def test_training_is_that_of_a_run_without_calibration(run, tmp_path):
    plain = tmp_path / "plain"
    metrics = complete(CONFIG.changed(calibrate=False), plain)
    for name in ("model.safetensors", "heads.safetensors"):
        files = [folder / "checkpoint" / "best" / name for folder in (run, plain)]
        assert files[0].read_bytes() == files[1].read_bytes()
    assert "calibration" not in metrics
    assert not (plain / CALIBRATION).exists()
    for file in (run / "predictions").glob("*.csv"):  # complete, and the same
        assert file.read_bytes() == (plain / "predictions" / file.name).read_bytes()


def test_metrics_and_measures_are_those_of_the_stored_scores(run):
    metrics, stored = json.loads((run / "metrics.json").read_text()), read_calibration(run)
    assert set(metrics["calibration"]) == set(stored) == set(CS224N)  # not of the auxiliary task
    for name, found in stored.items():
        kind = build_task(name).kind
        table = read_scores(run / "predictions" / scores_name(name, "dev"))
        marked = table.selected_on
        assert (len(table.ids), marked.sum()) == (40, len(found.nonconformity))
        others = table.values[~marked], table.targets[~marked]
        assert metrics["dev"][name] == kind.measure(*others)
        fitted = kind.calibrator.fit(table.values[marked], table.targets[marked])
        assert found.temperature == fitted.temperature
        np.testing.assert_array_equal(found.nonconformity, fitted.nonconformity)
        assert metrics["calibration"][name] == report(kind.calibrator, fitted, *others, 0.9)
    assert metrics["calibration"]["sst"]["scored_examples"] == 27
    assert read_run(run).state == "finished, part of dev"


def test_a_damaged_calibration_is_refused(tmp_path):
    file = tmp_path / CALIBRATION
    assert read_calibration(tmp_path) == {}
    for content in ({}, {"tasks": {"sst": 3}}, {"tasks": {"sst": {"temperature": "high"}}}):
        write_json(file, content)
        with pytest.raises(RunError, match=r"expected a calibration, found: .*restore it"):
            read_calibration(tmp_path)


def test_what_cannot_be_calibrated_is_refused(dev, tmp_path):
    modes = {"pretrain": {"objective": "simcse"}}
    for mode, needed in modes.items():
        with pytest.raises(SettingsError, match=f"calibrate: expected mode single .*found {mode}"):
            RunConfig(mode=mode, tasks=CS224N, calibrate=True, **needed)
    with pytest.raises(SettingsError, match="sst: expected 9 or more in a third of dev, found 8"):
        complete(CONFIG.changed(dev_limit=25), tmp_path / "few")
    assert not (tmp_path / "few").exists()
    assert Kind.calibrator is None  # of kinds that say nothing about it


def test_tasks_without_marked_examples_have_no_calibration(dev):
    scores = {"sst": np.full((100, 5), 0.2)}
    assert calibrate({"sst": SST}, {"sst": dev}, scores) == ({}, {})
