"""Whole runs, end to end: what they leave behind, repeat, resume and start from."""

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
@pytest.mark.parametrize("split", STUDENT)
@pytest.mark.parametrize("stem", FILES)
def test_prediction_files_and_probabilities_have_the_ids_in_the_files_order(stem, split, main_run):
    folder = main_run[0] / "predictions"
    task, data, _, header = FILES[stem]
    content = (folder / f"{stem}-{split}-output.csv").read_bytes()
    assert content.decode().split("\n")[0] == header
    assert b"\r" not in content
    rows = predictions(folder.parent, stem, split)
    ids = [row["id"].lower() for row in table(data, split)]
    with np.load(folder / f"{task}-{split}-probabilities.npz") as file:
        assert file["ids"].tolist() == [row[0] for row in rows] == ids
        scores = file["probabilities"]
    assert scores.dtype == np.float32
    shown = [row[1] for row in rows]
    values = np.array(shown, float)
    if stem == "sts":
        assert ((values >= 0) & (values <= 5)).all()
        np.testing.assert_array_equal(scores, values.astype(np.float32))
    else:
        assert set(shown) <= (set("01234") if stem == "sst" else {"0.0", "1.0"})
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
def test_the_best_epoch_is_kept_shown_and_drawn(main_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    folder, shown = main_run
    found = metrics(folder)
    best = max(found["history"], key=lambda epoch: epoch["selection_score"])
    assert [epoch["epoch"] for epoch in found["history"]] == [1, 2, 3]
    assert found["best_epoch"] == best["epoch"]
    dev = found["dev"]
    assert dev == best["dev"]
    assert best["selection_score"] == pytest.approx(dev["overall"])
    assert (shown.returncode, "Traceback" in shown.stderr) == (0, False)
    for value in (dev["overall"], dev["overall_plain_mean"], dev["sts"]["pearson"]):
        assert f"{value:.4f}" in shown.stdout
    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    tags = set(events.Tags()["scalars"])
    assert {"dev/sst/accuracy", "dev/qqp/f1", "dev/sts/pearson"} <= tags
    assert any(tag.startswith("train/") and tag.endswith("/loss") for tag in tags)
    drawn = [event.value for event in events.Scalars("dev/selection_score")]
    np.testing.assert_allclose(
        drawn, [one["selection_score"] for one in found["history"]], rtol=1e-6
    )


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
def test_the_main_command_again_gives_the_same_bytes(main_run, run, tmp_path):
    assert run(*MAIN, "--output", tmp_path / "again").returncode == 0
    found = prediction_bytes(tmp_path / "again")
    assert len(found) == 6
    assert found == prediction_bytes(main_run[0])


# Small runs, in process


def test_another_seed_gives_other_predictions(finished, run, tmp_path):
    folder, command = finished
    assert run(*command, "--seed", "1", "--output", tmp_path / "other").returncode == 0
    # A tiny encoder may predict one class for all; what it is sure of differs all the same.
    for task in ("sst", "qqp", "sts"):
        for split in ("dev", "test"):
            file = f"predictions/{task}-{split}-probabilities.npz"
            ours, others = (
                np.load(f / file)["probabilities"] for f in (folder, tmp_path / "other")
            )
            assert (ours != others).any()


def test_the_default_folder_is_named_by_the_configuration(small, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["--mode", "single", "--task", "sst", "--encoder", "tiny", "--data", small]
    for seed in ("1", "2", "2"):
        assert run(*command, "--epochs", "1", "--seed", seed).returncode == 0
    assert sorted("seed1-" in path.name for path in Path("runs").iterdir()) == [False, True]


@pytest.mark.parametrize(
    ("stem", "flags"),
    [
        ("sst", "--pooling cls --sst-head softmax --freeze-encoder"),
        ("para", "--qqp-head concat --precision bf16"),
        ("sts", "--sts-head cosine --sts-activation sigmoid --pooling max"),
    ],
)
def test_single_tasks_with_the_heads_of_the_baselines(stem, flags, small, ran, tmp_path):
    task, data, _, _ = FILES[stem]
    folder = tmp_path / "run"
    command = ["--mode", "single", "--task", task, "--encoder", "tiny", "--data", small]
    ran(*command, *flags.split(), "--epochs", "2", "--output", folder)
    assert set(prediction_bytes(folder)) == {f"{stem}-dev-output.csv", f"{stem}-test-output.csv"}
    for split in STUDENT:
        ids = [row[0] for row in predictions(folder, stem, split)]
        assert ids == [row["id"] for row in table(data, split, small)]
    assert set(metrics(folder)["dev"]) == {task}
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


def test_limit_draws_training_examples_only(small, data, run, tmp_path):
    command = ["--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1"]
    limited = [*command, "--limit", "5"]
    found = run(*limited, "--data", small, "--output", tmp_path / "limited")
    assert "train 5, dev 40, test 40" in found.stdout
    drawn = build_task("sst").read(data, "train").sample(5).ids
    train = data / "ids-sst-train.csv"
    lines = train.read_text("utf-8").splitlines(keepends=True)
    kept = [line for line in lines[1:] if set(line.split("\t")) & set(drawn)]
    assert len(kept) == 5
    train.write_text("".join([lines[0], *kept]), "utf-8")
    run(*command, "--data", data, "--output", tmp_path / "cut")
    assert prediction_bytes(tmp_path / "limited") == prediction_bytes(tmp_path / "cut")


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
