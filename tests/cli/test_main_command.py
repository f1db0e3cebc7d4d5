"""Whole runs, end to end: what they leave behind, repeat, resume and start from."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from run_files import (
    FILES,
    MAIN,
    STUDENT,
    metrics,
    prediction_bytes,
    predictions,
    same,
    table,
    weights,
)
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score

from minbert import BiEncoder
from tasks import build_task

# The main command


@pytest.fixture(scope="session")
def main_run(process, tmp_path_factory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("main") / "run"
    return folder, process(*MAIN, "--output", folder)


@pytest.mark.slow
def test_the_main_command_ends_well_and_shows_its_figures(main_run):
    folder, found = main_run
    assert found.returncode == 0, found.stderr
    assert "Traceback" not in found.stderr
    dev = metrics(folder)["dev"]
    for value in (dev["overall"], dev["overall_plain_mean"], dev["sts"]["pearson"]):
        assert f"{value:.4f}" in found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("split", STUDENT)
@pytest.mark.parametrize("stem", FILES)
def test_prediction_files_have_header_and_ids_in_the_files_order(stem, split, main_run):
    folder, _ = main_run
    _, data, _, header = FILES[stem]
    content = (folder / "predictions" / f"{stem}-{split}-output.csv").read_bytes()
    assert content.decode().split("\n")[0] == header
    assert b"\r" not in content
    rows = predictions(folder, stem, split)
    assert [row[0] for row in rows] == [row["id"].lower() for row in table(data, split)]
    values = [row[1] for row in rows]
    if stem == "sst":
        assert set(values) <= set("01234")
    elif stem == "para":
        assert set(values) <= {"0.0", "1.0"}
    else:
        assert all(0 <= float(value) <= 5 for value in values)


@pytest.mark.slow
@pytest.mark.parametrize("split", STUDENT)
@pytest.mark.parametrize("stem", FILES)
def test_probabilities_agree_with_the_predictions(stem, split, main_run):
    folder, _ = main_run
    task = FILES[stem][0]
    rows = predictions(folder, stem, split)
    with np.load(folder / "predictions" / f"{task}-{split}-probabilities.npz") as file:
        assert file["ids"].tolist() == [row[0] for row in rows]
        scores = file["probabilities"]
    assert scores.dtype == np.float32
    values = np.array([float(row[1]) for row in rows])
    if stem == "sts":
        np.testing.assert_array_equal(scores, values.astype(np.float32))
    else:
        assert scores.shape == (100, 5 if stem == "sst" else 2)
        np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)
        np.testing.assert_array_equal(scores.argmax(1), values)


@pytest.mark.slow
def test_metrics_follow_from_the_prediction_files(main_run):
    folder, _ = main_run
    dev = metrics(folder)["dev"]
    for stem, (task, data, label, _) in FILES.items():
        found = [float(row[1]) for row in predictions(folder, stem, "dev")]
        truth = [float(row[label]) for row in table(data, "dev")]
        if task == "sts":
            assert dev["sts"]["pearson"] == pytest.approx(pearsonr(found, truth)[0], abs=1e-6)
            assert dev["sts"]["spearman"] == pytest.approx(spearmanr(found, truth)[0], abs=1e-6)
        else:
            assert dev[task]["accuracy"] == pytest.approx(accuracy_score(truth, found))
        if task == "qqp":
            assert dev[task]["f1"] == pytest.approx(f1_score(truth, found, zero_division=0))
    figures = [dev["sst"]["accuracy"], dev["qqp"]["accuracy"], dev["sts"]["pearson"]]
    assert dev["overall_plain_mean"] == pytest.approx(np.mean(figures))
    assert dev["overall"] == pytest.approx(np.mean([*figures[:2], (figures[2] + 1) / 2]))


@pytest.mark.slow
def test_the_best_epoch_is_the_one_kept(main_run):
    found = metrics(main_run[0])
    best = max(found["history"], key=lambda epoch: epoch["selection_score"])
    assert [epoch["epoch"] for epoch in found["history"]] == [1, 2, 3]
    assert found["best_epoch"] == best["epoch"]
    assert found["dev"] == best["dev"]
    assert best["selection_score"] == pytest.approx(found["dev"]["overall"])


@pytest.mark.slow
def test_configuration_checkpoint_and_events_are_left(main_run):
    folder, _ = main_run
    config = json.loads((folder / "config.json").read_text())
    assert config["tasks"] == ["sst", "qqp", "sts"]
    assert (config["sampling"], config["combiner"]) == ("annealed", "pcgrad")
    assert BiEncoder.from_pretrained(folder / "checkpoint" / "best").encode(["a"]).shape == (1, 32)
    assert len(list((folder / "predictions").iterdir())) == 12
    assert not list(folder.rglob("*.minbert-*"))


@pytest.mark.slow
def test_tensorboard_shows_losses_and_dev_metrics(main_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, _ = main_run
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    tags = set(events.Tags()["scalars"])
    assert {"dev/sst/accuracy", "dev/qqp/f1", "dev/sts/pearson", "dev/selection_score"} <= tags
    assert any(tag.startswith("train/") and tag.endswith("/loss") for tag in tags)
    shown = [event.value for event in events.Scalars("dev/selection_score")]
    kept = [epoch["selection_score"] for epoch in metrics(folder)["history"]]
    np.testing.assert_allclose(shown, kept, rtol=1e-6)


@pytest.mark.slow
def test_the_main_command_again_gives_the_same_bytes(main_run, run, tmp_path):
    assert run(*MAIN, "--output", tmp_path / "again").returncode == 0
    found = prediction_bytes(tmp_path / "again")
    assert len(found) == 6
    assert found == prediction_bytes(main_run[0])


# Small runs, in process


def test_another_seed_gives_other_predictions(finished, run, tmp_path):
    folder, command = finished
    assert run(*command, "--output", tmp_path / "same").returncode == 0
    assert run(*command, "--seed", "1", "--output", tmp_path / "other").returncode == 0
    assert prediction_bytes(tmp_path / "same") == prediction_bytes(folder)
    # A tiny encoder may predict one class for all; what it is sure of differs all the same.
    for task in ("sst", "qqp", "sts"):
        for split in ("dev", "test"):
            file = f"predictions/{task}-{split}-probabilities.npz"
            ours, others = (
                np.load(f / file)["probabilities"] for f in (folder, tmp_path / "other")
            )
            assert (ours != others).any()
    other = prediction_bytes(tmp_path / "other")
    for split in ("dev", "test"):
        name = f"sts-{split}-output.csv"
        assert other[name] != prediction_bytes(folder)[name]


@pytest.mark.parametrize("stem", FILES)
def test_single(stem, small, run, tmp_path):
    task, data, _, _ = FILES[stem]
    folder = tmp_path / "run"
    command = ["--mode", "single", "--task", task, "--encoder", "tiny", "--data", small]
    assert run(*command, "--epochs", "1", "--output", folder).returncode == 0
    assert set(prediction_bytes(folder)) == {f"{stem}-dev-output.csv", f"{stem}-test-output.csv"}
    for split in STUDENT:
        ids = [row[0] for row in predictions(folder, stem, split)]
        assert ids == [row["id"] for row in table(data, split, small)]
    assert set(metrics(folder)["dev"]) == {task}


def test_the_default_folder_is_named_by_the_configuration(small, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["--mode", "single", "--task", "sst", "--encoder", "tiny", "--data", small]
    for seed in ("1", "2", "2"):
        assert run(*command, "--epochs", "1", "--seed", seed).returncode == 0
    assert sorted("seed1-" in path.name for path in Path("runs").iterdir()) == [False, True]


BASELINES = {
    "M1": ("sst", "--pooling", "cls", "--sst-head", "softmax", "--freeze-encoder"),
    "M2": ("qqp", "--qqp-head", "concat"),
    "M3": ("sts", "--sts-head", "cosine"),
    "M6 sigmoid": ("sts", "--sts-activation", "sigmoid"),
    "no activation": ("sts", "--sts-activation", "none"),
    "max pooling": ("sst", "--pooling", "max"),
    "bf16": ("sst", "--precision", "bf16"),
}


@pytest.mark.parametrize("flags", BASELINES.values(), ids=BASELINES)
def test_heads_of_the_baselines_train(flags, small, run, tmp_path):
    folder = tmp_path / "run"
    command = ["--mode", "single", "--encoder", "tiny", "--data", small, "--epochs", "2"]
    found = run(*command, "--task", *flags, "--output", folder)
    assert found.returncode == 0, found.stderr
    initial = BiEncoder.from_pretrained("tiny").state_dict()
    kept = BiEncoder.from_pretrained(folder / "checkpoint" / "best").state_dict()
    assert same(kept, initial) == ("--freeze-encoder" in flags)


def test_a_frozen_encoder_leaves_the_heads_to_learn(small, run, tmp_path):
    command = ["--mode", "multitask", "--encoder", "tiny", "--data", small, "--freeze-encoder"]
    heads = []
    for rate in ("1e-20", "1e-3"):
        flags = ["--epochs", "1", "--head-lr", rate, "--output", tmp_path / rate]
        assert run(*command, *flags).returncode == 0
        heads.append(weights(tmp_path / rate, "heads"))
    assert heads[0].keys() == heads[1].keys()
    assert not any(torch.equal(heads[0][name], heads[1][name]) for name in heads[0])


def test_limit_draws_training_examples_alone(small, data, run, tmp_path):
    command = ["--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1"]
    limited = [*command, "--limit", "5"]
    found = run(*limited, "--data", small, "--output", tmp_path / "limited")
    assert "train 5, dev 40, test 40" in found.stdout
    drawn = build_task("sst").read(data, "train").some(5).ids
    train = data / "ids-sst-train.csv"
    lines = train.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines[1:] if set(line.split("\t")) & set(drawn)]
    assert len(kept) == 5
    train.write_text("".join([lines[0], *kept]), "utf-8")
    run(*command, "--data", data, "--output", tmp_path / "cut")
    assert prediction_bytes(tmp_path / "limited") == prediction_bytes(tmp_path / "cut")


def test_patience_stops_when_nothing_gets_better(small, run, tmp_path, monkeypatch):
    monkeypatch.setattr("multitask.trainer.selection_score", lambda metrics, tasks: 0.5)
    command = ["--mode", "single", "--task", "sst", "--encoder", "tiny", "--data", small]
    for patience, epochs in ((["--patience", "2"], 3), ([], 6)):
        folder = tmp_path / str(epochs)
        found = run(*command, "--epochs", "6", *patience, "--output", folder)
        assert found.returncode == 0, found.stderr
        found = metrics(folder)
        assert (found["epochs"], found["best_epoch"]) == (epochs, 1)


@pytest.mark.parametrize("sampling", ["annealed", "round-robin"])
def test_steps_per_epoch(sampling, small, run, tmp_path):
    command = ["--mode", "multitask", "--encoder", "tiny", "--data", small, "--epochs", "2"]
    flags = ["--sampling", sampling, "--steps-per-epoch", "3", "--batches-per-step", "2"]
    assert run(*command, *flags, "--output", tmp_path / "run").returncode == 0
    found = metrics(tmp_path / "run")
    assert found["steps"] == 6
    assert [epoch["step"] for epoch in found["history"]] == [3, 6]


def test_empty_and_very_long_sentences(data, run, tmp_path):
    long = "word, " * 5000
    for path in data.glob("*.csv"):
        texts, label = (1 if "sst" in path.name else 2), [] if "test" in path.name else ["1"]
        with open(path, "a", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter="\t", lineterminator="\n")
            rows.writerow([40, "empty", *[""] * texts, *label])
            rows.writerow([41, "long", *[long] * texts, *label])
            rows.writerow([42, "mixed", *["", long][:texts], *label])
    folder = tmp_path / "run"
    assert run(*MAIN, "--epochs", "1", "--data", data, "--output", folder).returncode == 0
    for stem in FILES:
        for split in STUDENT:
            rows = predictions(folder, stem, split)
            assert [row[0] for row in rows[-3:]] == ["empty", "long", "mixed"]
            assert np.isfinite([float(row[1]) for row in rows]).all()
