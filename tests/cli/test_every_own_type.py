"""Every type of own tasks in every mode, on two tiny runs of all types that the tests share."""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from run_files import metrics, predictions, telemetry

import cli
from common.files import write_json
from multitask import task

OWN = Path(__file__).parents[2] / "tasks" / "sample" / "own"


class Case(NamedTuple):
    """A file, the columns of its texts, the keys of its label."""

    file: str
    texts: tuple[str, ...]
    label: dict[str, object]


PAIR = ("One guest says", "Another guest says")
HOW = {"label": "How alike (0-10)"}
CASES = {
    "classification": Case("requests.csv", ("message",), {"label": "topic"}),
    "similarity": Case("alike.csv", PAIR, HOW),
    "multi-label": Case("requests.csv", ("message",), {"label": "tags"}),
    "multi-label columns": Case("replies.csv", ("better",), {"label": ["apology", "offer"]}),
    "regression": Case("replies.csv", ("better",), {"label": "minutes"}),
    "regression pairs": Case("alike.csv", PAIR, HOW),
    "regression joint": Case("alike.csv", PAIR, {**HOW, "pair": "joint"}),
}
SMALL = ("--encoder", "tiny", "--epochs", "1", "--steps-per-epoch", "2", "--batch-size", "4")
ENDINGS = ("html", "csv", "md")
NUMBERS = [name for name in CASES if name.split()[0] in ("regression", "similarity")]


def name_of(case):
    return case.replace("-", "").replace(" ", "_")


def metric_of(case):
    return task(name_of(case), **keys_of(case)).build().kind.main_metric


def keys_of(case):
    file, texts, label = CASES[case]
    return {"train": str(OWN / file), "type": case.split()[0], "text": texts, **label}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("types")


@pytest.fixture(scope="module")
def flags(root):
    write_json(root / "tasks.json", {"tasks": {name_of(case): keys_of(case) for case in CASES}})
    return ("--mode", "multitask", "--config", str(root / "tasks.json"), *SMALL)


@pytest.fixture(scope="module")
def trained(root, flags):
    """Runs of two seeds of a task of each type; read only."""
    folders = [root / "runs" / f"seed{seed}" for seed in (1, 2)]
    for seed, folder in enumerate(folders, 1):
        command = (*flags, "--class-weights", "balanced")
        assert cli.main([*command, "--seed", str(seed), "--output", str(folder)]) == 0
    return folders


def test_all_types_learn_with_branches_noise_and_teachers(trained, flags, tmp_path):
    """All losses with these terms are finite."""
    command = (*flags, "--branch", "top-1", "--smart-weight", "1")
    command += ("--teacher", *map(str, trained))
    assert cli.main([*command, "--output", str(tmp_path / "run")]) == 0
    names = {name_of(case) for case in CASES}
    losses = telemetry(tmp_path / "run")[0]["losses"]
    assert losses.keys() <= names
    dev = metrics(tmp_path / "run")["dev"]
    assert names == dev.keys()
    found = [*losses.values(), *(value for one in dev.values() for value in one.values())]
    assert np.isfinite(found).all()


def test_runs_are_listed_and_compared(trained, tmp_path, run_ok, monkeypatch):
    monkeypatch.setattr("reports.figures.save_figure", lambda _, file: file.write_text("<svg/>"))
    listed = run_ok("--mode", "runs", "--root", trained[0].parent).stdout
    named = [f"{name}={folder}" for name, folder in zip("ab", trained, strict=True)]
    compare = ("--mode", "compare", "--runs", *named)
    printed = run_ok(*compare, "--output", tmp_path / "page").stdout
    rows = [line.split()[1:3] for line in printed.splitlines()]
    html, table, rest = ((tmp_path / "page" / f"comparison.{e}").read_text() for e in ENDINGS)
    for case in CASES:
        name = name_of(case)
        assert f"{name} {metric_of(case)}" in listed
        assert [name, metric_of(case)] in rows
        assert f"{name} {metric_of(case)}".replace("_", " ") in html
        assert f"\na,{name},1,{metric_of(case)}," in table
    assert rest.count("\n## ") == 3


@pytest.fixture(scope="module")
def exported(trained, root):
    command = ["--mode", "export", "--run", str(trained[0]), "--output", str(root / "exported")]
    assert cli.main(command) == 0
    return root / "exported"


@pytest.mark.parametrize("case", CASES)
def test_an_export_predicts_what_the_run_predicted(case, trained, exported, tmp_path, run_ok):
    name, (file, texts, _) = name_of(case), CASES[case]
    card = (exported / "README.md").read_text()
    assert f"| data of {name} | {file}, {case.split()[0]} |" in card
    assert f"| {name} | {metric_of(case)} |" in card
    predict = ("--input", OWN / file, "--text", *texts, "--tasks", name)
    run_ok("--mode", "predict", "--run", exported, *predict, "--output", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as rows:
        values = [row[name] for row in csv.DictReader(rows)]
    for identity, value in predictions(trained[0], name, "dev"):
        found = values[int(identity) - 1]
        if case in NUMBERS:
            assert float(found) == pytest.approx(float(value), rel=1e-4, abs=1e-4)
        else:
            assert found == value
