"""Classes and several labels of a user's file, in every mode."""

import csv
import re
import warnings
from pathlib import Path

import pytest
from run_files import metrics

import cli

REQUESTS = Path(__file__).parents[2] / "tasks" / "sample" / "own" / "requests.csv"
TAGS = f"tags={REQUESTS}:type=multi-label,text=message,label=tags"
URGENCY = (
    f"urgency={REQUESTS}:type=classification,text=message,label=urgency,labels=low|normal|high"
)
TASKS = ("--task", TAGS, "--task", URGENCY)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Runs of two seeds on both tasks; read only."""
    folders = [tmp_path_factory.mktemp("trained") / f"run{seed}" for seed in (1, 2)]
    for seed, folder in enumerate(folders, 1):
        command = ("--mode", "multitask", *TASKS, "--encoder", "tiny", "--epochs", "1")
        assert cli.main([*command, "--seed", str(seed), "--output", str(folder)]) == 0
    return folders


def test_both_are_compared_merged_checked_and_exported(trained, tmp_path, run_ok, recwarn):
    assert set(metrics(trained[0])["dev"]["urgency"]) == {"accuracy", "macro_f1", "matthews"}
    figures = metrics(trained[0])["by_class"]
    assert list(figures["dev"]["urgency"]) == ["low", "normal", "high"]  # in their order
    assert len(figures["test"]["tags"]) == 8
    for split, found in figures.items():
        f1 = [one["f1"] for one in found["tags"].values()]
        assert metrics(trained[0])[split]["tags"]["macro_f1"] == pytest.approx(sum(f1) / 8)
    named = [f"{name}={folder}" for name, folder in zip("ab", trained, strict=True)]
    page = ("--mode", "compare", "--runs", *named, "--output", tmp_path / "page")
    printed = run_ok(*page).stdout
    assert not [one for one in recwarn if "layout" in str(one.message)]  # of a figure
    assert "urgency  accuracy" in printed
    assert "tags     micro_f1" in printed
    html = (tmp_path / "page" / "comparison.html").read_text()
    assert "Disagreements on tags" in html
    assert "confusion-urgency-1" in html
    assert "confusion-tags" not in html
    assert "Classes of tags: precision, recall and F1" in html
    assert "similarity-tags" not in html
    merge = ("--mode", "ensemble", "--runs", *trained, "--method", "vote")
    printed = run_ok(*merge, "--output", tmp_path / "vote").stdout
    assert "tags     ensemble          micro_f1" in printed
    for run in (trained[0], tmp_path / "vote"):
        table = run_ok("--mode", "evaluate", "--predictions", run).stdout
        rows = [line.split() for line in table.splitlines()]
        for task in ("tags", "urgency"):
            for name, value in metrics(run)["dev"][task].items():
                assert ["dev", task, "7", "sound", name, f"{value:.4f}"] in rows
    run_ok("--mode", "export", "--run", trained[0], "--output", tmp_path / "exported")
    card = (tmp_path / "exported" / "README.md").read_text()
    assert "| data of tags | requests.csv, multi-label |" in card
    assert "| data of urgency | requests.csv, classification |" in card


def test_predictions_join_the_labels(trained, tmp_path, run_ok):
    own = ("--column", "message", "--tasks", "tags", "--probabilities")
    predict = ("--mode", "predict", "--run", trained[0], "--input", REQUESTS, *own)
    run_ok(*predict, "--output", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = [name.removeprefix("tags: ") for name in rows[0] if name.startswith("tags: ")]
    assert len(rows) == 60
    assert len(names) == 8
    for row in rows:
        above = [name for name in names if float(row[f"tags: {name}"]) > 0.5]
        assert row["tags (predicted)"] == "|".join(above)


def test_the_demo_names_the_labels(trained):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    from serving.model import MultiTaskModel
    from serving.service import make_app

    app = make_app(MultiTaskModel.load(trained[0]), hosts=("testserver",))
    with TestClient(app) as client:
        found = client.post("/predict", json={"texts": ["No hot water."]}).json()["tasks"]
    names = [one["name"] for one in found["tags"]["classes"]]
    chosen = [name for name, value in zip(names, found["tags"]["value"], strict=True) if value]
    assert found["tags"]["label"] == "|".join(chosen)
    assert found["urgency"]["label"] in ("low", "normal", "high")


def test_modes_that_need_one_class_refuse_several_labels(trained, tmp_path, error_line):
    for command in (("single", "--objective", "scl"), ("probe",)):
        line = error_line(2, "--mode", *command, "--task", TAGS)
        assert "expected a task with classes, found tags" in line


def test_a_run_with_weights_prints_them_and_the_figures_of_each_class(tmp_path, run_ok):
    settings = ("--select-by", "macro_f1", "--class-weights", "balanced")
    command = ("--mode", "multitask", *TASKS, *settings)
    small = ("--encoder", "tiny", "--epochs", "1", "--output", tmp_path / "run")
    printed = run_ok(*command, *small).stdout
    assert "urgency: weights of classes: low " in printed
    assert "tags: weights of labels, relative to their absence: access " in printed
    assert re.search(r"^task +class +precision +recall +f1 +support$", printed, re.MULTILINE)
    for task, names in metrics(tmp_path / "run")["by_class"]["dev"].items():
        for name, one in names.items():
            figures = (f"{one[key]:.4f}" for key in ("precision", "recall", "f1"))
            line = " +".join([task, name, *figures, str(one["support"])])
            assert re.search(rf"^{line}$", printed, re.MULTILINE)
    assert "macro_f1" in metrics(tmp_path / "run")["dev"]["urgency"]
    run_ok("--mode", "compare", "--runs", tmp_path / "run")
