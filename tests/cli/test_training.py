"""Modes single and multitask: whole runs, what they print, and the files that they write."""

import csv
import io
import re
import shlex
import sys
from collections import Counter
from contextlib import redirect_stdout

import numpy as np
import pytest
from run_files import (
    FILES,
    STUDENT,
    config,
    metrics,
    prediction_bytes,
    predictions,
    same,
    table,
    telemetry,
)
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score

import cli
from minbert import BiEncoder

MAIN = ("--mode", "multitask", "--sampling", "annealed", "--pcgrad", "--encoder", "tiny")
MAIN += ("--limit", "60")


@pytest.fixture(scope="module")
def main_run(tmp_path_factory):
    """Folder and output of a run."""
    folder = tmp_path_factory.mktemp("main") / "run"
    with redirect_stdout(io.StringIO()) as printed:
        assert cli.main([*MAIN, "--output", str(folder)]) == 0
    return folder, printed.getvalue()


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
    printed = [row[1] for row in rows]
    values = np.array(printed, float)
    if stem == "sts":
        assert ((values >= 0) & (values <= 5)).all()
        np.testing.assert_array_equal(scores, values.astype(np.float32))
    else:
        assert set(printed) <= (set("01234") if stem == "sst" else {"0.0", "1.0"})
        assert scores.shape == (300, 5 if stem == "sst" else 2)
        np.testing.assert_allclose(scores.sum(1), 1, rtol=1e-5)
        np.testing.assert_array_equal(scores.argmax(1), values)


def test_metrics_follow_from_the_prediction_files(main_run):
    folder, _ = main_run
    dev = metrics(folder)["dev"]
    for stem, (task, data, label, _) in FILES.items():
        values = [float(row[1]) for row in predictions(folder, stem, "dev")]
        truth = [float(row[label]) for row in table(data, "dev")]
        if task == "sts":
            assert dev["sts"]["pearson"] == pytest.approx(pearsonr(values, truth)[0], abs=1e-6)
            assert dev["sts"]["spearman"] == pytest.approx(spearmanr(values, truth)[0], abs=1e-6)
        else:
            assert dev[task]["accuracy"] == pytest.approx(accuracy_score(truth, values))
        if task == "qqp":
            assert dev[task]["f1"] == pytest.approx(f1_score(truth, values, zero_division=0))
    figures = [dev["sst"]["accuracy"], dev["qqp"]["accuracy"], dev["sts"]["pearson"]]
    assert dev["overall_plain_mean"] == pytest.approx(np.mean(figures))
    assert dev["overall"] == pytest.approx(np.mean([*figures[:2], (figures[2] + 1) / 2]))


def test_the_best_epoch_is_stored_and_printed(main_run):
    folder, printed = main_run
    stored = metrics(folder)
    best = max(stored["history"], key=lambda epoch: epoch["selection_score"])
    assert [epoch["epoch"] for epoch in stored["history"]] == [1, 2, 3]
    assert stored["best_epoch"] == best["epoch"]
    dev = stored["dev"]
    assert dev == best["dev"]
    assert best["selection_score"] == pytest.approx(dev["overall"])
    for value in (dev["overall"], dev["overall_plain_mean"], dev["sts"]["pearson"]):
        assert f"{value:.4f}" in printed
    steps = telemetry(folder)
    assert len(steps) == stored["steps"] == sum(stored["combiner_steps"].values())
    for step in steps:
        assert step["losses"].keys() == step["weights"].keys()
        if len(step["losses"]) > 1:
            assert list(step["layers"]) == ["embeddings", "layer 1", "layer 2"]
    examples = printed.partition("dev example")[2].splitlines()[2:5]
    assert [line.split()[0] for line in examples] == ["sst", "qqp", "sts"]
    commonest = max(Counter(row["sentiment"] for row in table("ids-sst", "dev")).values())
    (line,) = re.findall(r"^sst +accuracy .*", printed, re.MULTILINE)
    assert line.split()[2:] == [f"{dev['sst']['accuracy']:.4f}", f"{commonest / 300:.4f}"]


@pytest.mark.parametrize(
    ("stem", "flags"),
    [
        ("sst", "--pooling cls --sst-head softmax --freeze-encoder"),
        ("para", "--qqp-head concat --precision bf16"),
        ("sts", "--sts-head cosine --sts-activation sigmoid --pooling max"),
    ],
)
def test_single_tasks_with_the_heads_of_the_baselines(stem, flags, small, run_ok, tmp_path):
    task, data, _, _ = FILES[stem]
    folder = tmp_path / "run"
    command = ["--mode", "single", "--task", task, "--encoder", "tiny", "--data", small]
    run_ok(*command, *flags.split(), "--epochs", "2", "--output", folder)
    assert set(prediction_bytes(folder)) == {f"{stem}-dev-output.csv", f"{stem}-test-output.csv"}
    for split in STUDENT:
        ids = [row[0] for row in predictions(folder, stem, split)]
        assert ids == [row["id"] for row in table(data, split, small)]
    assert set(metrics(folder)["dev"]) == {task}
    initial = BiEncoder.from_pretrained("tiny").state_dict()
    best = BiEncoder.from_pretrained(folder / "best").state_dict()
    assert same(best, initial) == ("--freeze-encoder" in flags)


def test_empty_and_very_long_sentences_are_predicted(data, run_ok, tmp_path):
    long = "word, " * 5000
    for path in data.glob("*.csv"):
        texts, label = (1 if "sst" in path.name else 2), [] if "test" in path.name else ["1"]
        with open(path, "a", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, delimiter="\t", lineterminator="\n")
            rows.writerow([40, "empty", *[""] * texts, *label])
            rows.writerow([41, "long", *[long] * texts, *label])
            rows.writerow([42, "mixed", *["", long][:texts], *label])
    folder = tmp_path / "run"
    run_ok(*MAIN, "--epochs", "1", "--data", data, "--output", folder)
    for stem in FILES:
        for split in STUDENT:
            rows = predictions(folder, stem, split)
            assert [row[0] for row in rows[-3:]] == ["empty", "long", "mixed"]
            assert np.isfinite([float(row[1]) for row in rows]).all()


def test_a_limit_is_a_number_or_a_share_of_all_or_of_one_task(run_ok, tmp_path):
    few = ("--epochs", "2", "--steps-per-epoch", "1", "--dev-limit", "8", "--test-limit", "8")
    main = ("--mode", "multitask", "--encoder", "tiny", *few, "--output", tmp_path / "run")
    result = run_ok(*main, "--limit", "30", "sst=0.1", "qqp=0.5")
    for task, count in {"sst": 96, "qqp": 540, "sts": 30}.items():
        assert f"{task}: train {count}, dev 8" in result.stdout
    # The hybrid sampler begins with the largest file, though --limit makes all tasks equal.
    run_ok(*main, "--limit", "20", "--sampling", "hybrid", "--overwrite")
    assert [*telemetry(tmp_path / "run")[0]["losses"]] == ["qqp"]


def test_several_seeds_are_the_runs_of_each_and_their_mean_is_printed(small, run_ok, tmp_path):
    flags = ("--mode", "single", "--task", "sst", "--encoder", "tiny", "--epochs", "1", "--seed")
    flags = (*flags, "3", "--data", small, "--output")
    result = run_ok(*flags, tmp_path / "both", "--seeds", "2")
    run_ok(*flags, tmp_path / "first")
    first, second = (tmp_path / "both" / f"seed-{seed}" for seed in (3, 4))
    assert prediction_bytes(first) == prediction_bytes(tmp_path / "first")
    assert [config(folder)["seed"] for folder in (first, second)] == [3, 4]
    scores = [metrics(folder)["dev"]["sst"]["accuracy"] for folder in (first, second)]
    assert f"{np.mean(scores):.4f} ± {np.std(scores, ddof=1):.4f} (2)" in result.stdout
    assert f"--runs {first} {second}" in result.stdout
    shown = run_ok("--mode", "compare", "--runs", tmp_path / "both", f"one={first}").stdout
    assert "2 seeds and seed 3; dev examples: sst 40" in shown
    run_ok("--mode", "ensemble", "--runs", tmp_path / "both", "--output", tmp_path / "merged")
    assert len(config(tmp_path / "merged")["members"]["sst"]) == 2


RUN = ("--mode", "multitask", "--tasks", "sst", "sts", "--encoder", "tiny", "--epochs", "1")
SHORT = (*RUN, "--steps-per-epoch", "1", "--limit", "16", "--dev-limit", "20")


def test_the_first_lines_say_what_is_trained_and_where_it_is_written(run_ok, cwd):
    lines = run_ok(*SHORT, "--pcgrad", "--output", "my run").stdout.splitlines()
    assert lines[0] == "run folder: my run"
    assert lines[1].startswith("precision: ")
    assert lines[2:4] == [f"{task}: train 16, dev 20, test 300 examples" for task in ("sst", "sts")]
    assert "trains tiny on sst and sts, on cpu: 1 epoch, 1 step in all" in lines
    assert any(line.startswith("1 step: ") for line in lines)
    assert not any("1 steps" in line for line in lines)


def test_the_last_line_is_a_command_that_runs_as_printed(tmp_path, monkeypatch, run_ok):
    monkeypatch.chdir(tmp_path)
    done = run_ok(*SHORT, "--output", "my run's")
    *_, after = done.stdout.partition("\nnext: ")
    words = shlex.split(after)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a film\n")))
    assert "sst" in run_ok(*words[words.index("--mode") :]).stdout
