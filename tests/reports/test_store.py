"""Runs on disk, finished or not: the table of them, and a finished one as a cell."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import RunError
from common.json_files import write_json
from multitask.config import RunConfig
from multitask.run_folder import Metrics
from reports.cells import cell
from reports.run_tables import runs_table, summary
from reports.store import StoredRun, find_runs
from reports.tables import text_table
from tasks import TASK_NAMES, build_task
from tasks.task_description import TaskDescription

CONFIG = RunConfig(mode="single", tasks=("sts",), epochs=5, smart_weight={"sts": 3.0}, lr=2e-5)


SINGLE = RunConfig(mode="single", tasks=("sts",))


@pytest.fixture
def root(tmp_path):
    for name in ("a/finished", "half", "begun"):
        (tmp_path / name).mkdir(parents=True)
        write_json(tmp_path / name / "config.json", CONFIG.to_json())
    write_json(tmp_path / "a/finished/metrics.json", {"dev": {"sts": {"pearson": 0.87654}}})
    (tmp_path / "half/checkpoint/step-00000010").mkdir(parents=True)
    write_json(tmp_path / "half/checkpoint/step-00000010/state.json", {"progress": {"epoch": 2}})
    (tmp_path / "half/checkpoint/best").mkdir()
    write_json(tmp_path / "half/checkpoint/best/config.json", {"hidden_size": 4})
    (tmp_path / "encoder").mkdir()
    write_json(tmp_path / "encoder/config.json", {"hidden_size": 4})
    return tmp_path


def test_every_run_is_found_with_its_state(root):
    found = {str(run.folder.relative_to(root)): run.state for run in find_runs(root)[0]}
    assert found == {"a/finished": "finished", "begun": "begun", "half": "epoch 2 of 5"}


def test_the_table_shows_what_differs_from_the_defaults(root):
    lines = runs_table(find_runs(root)[0], root).splitlines()
    assert len(lines) == 2 + 3 + 1
    line = next(line for line in lines if " a/finished " in line)
    for shown in ("smart_weight sts=3", "lr 2e-05", "0.8765"):
        assert shown in line
    assert "batch_size" not in line
    plain = replace(CONFIG, epochs=3, smart_weight={}, lr=1e-4)
    assert StoredRun(root, plain.to_json(), None).settings == {}


def test_a_damaged_file_is_named(root):
    (root / "half" / "config.json").write_text("{")
    runs, (problem,) = find_runs(root)
    assert "half/config.json: expected a JSON object" in problem
    assert len(runs) == 2


def test_mode_runs(root, capsys, tmp_path):
    import cli

    (tmp_path / "empty").mkdir()
    for folder, expected in ((root, "epoch 2 of 5"), (tmp_path / "empty", "no runs under")):
        assert cli.main(["--mode", "runs", "--root", str(folder)]) == 0
        assert expected in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        cli.main(["--mode", "runs", "--root", str(tmp_path / "nowhere")])
    assert ended.value.code == 2


def described(name, kind):
    """An own task, as a configuration holds it."""
    labels = ("a", "b") if kind == "classification" else ()
    return TaskDescription(name, kind, "m.csv", ("t", "u"), "y", labels=labels).to_json()


def test_every_task_has_a_column_of_its_main_metric(tmp_path):
    for name, own, dev in (
        ("one", {"mine": "classification"}, {"mine": {"matthews": 0.1, "accuracy": 0.61239}}),
        ("two", {"mine": "similarity"}, {"mine": {"spearman": 0.2, "pearson": 0.71239}}),
        ("three", {}, {"rte": {"f1": 0.3, "accuracy": 0.81239}, "sst": {"accuracy": 0.91239}}),
        ("pretrained", {"other": "classification"}, {"other": {"knn_accuracy": 0.4}}),
    ):
        (tmp_path / name).mkdir()
        described_tasks = {task: described(task, kind) for task, kind in own.items()}
        plain = RunConfig(mode="multitask", tasks=("sst",))
        config = replace(plain, tasks=tuple(dev), own_tasks=described_tasks)
        write_json(tmp_path / name / "config.json", config.to_json())
        write_json(tmp_path / name / "metrics.json", {"dev": dev})
    runs, problems = find_runs(tmp_path)
    assert not problems
    header, _, *lines, _ = runs_table(runs, tmp_path).splitlines()
    shown = ("sst accuracy", "qqp accuracy", "sts pearson", "rte accuracy", "mine accuracy")
    places = [header.index(name) for name in (*shown, "mine pearson")]
    assert places == sorted(places)
    assert "other" not in header
    name = header.index("run")
    figures = {line[name:].split()[0]: re.findall(r"\b0\.\d{4}\b", line) for line in lines}
    assert figures == {
        "three": ["0.8624", "0.9124", "0.8124"],
        "two": ["0.8562", "0.7124"],
        "one": ["0.6124", "0.6124"],
        "pretrained": [],
    }
    assert list(figures) == ["three", "two", "one", "pretrained"]  # by score
    column = header.index("mine pearson")
    cells = {n: line[column : column + 12].strip() for n, line in zip(figures, lines, strict=True)}
    assert cells == {"one": "", "two": "0.7124", "three": "", "pretrained": ""}


@pytest.mark.parametrize("name", TASK_NAMES)
def test_the_main_metric_is_the_tasks_own(tmp_path, name):
    run = StoredRun(tmp_path, {"tasks": [name]}, None)
    assert run.main_metric(name) == build_task(name).kind.main_metric


def test_columns_are_as_wide_as_their_widest_cell_and_figures_stand_right():
    table = text_table(["task", "dev"], [["sst", "0.5"], ["similarity", "12.25"]])
    assert table.splitlines() == [
        "task          dev",
        "----------  -----",
        "sst           0.5",
        "similarity  12.25",
    ]


@pytest.mark.parametrize(
    ("test", "blank"),
    [
        ({}, None),
        ({"sts": {"pearson": 0.4}}, "blank: the labels of test are not known for sst"),
        ({"sst": {"accuracy": 0.1}, "sts": {"pearson": 0.4}}, "blank: overall is computed on dev"),
    ],
)
def test_the_summary_explains_blank_cells_of_test(test, blank):
    dev = {"sst": {"accuracy": 0.5}, "sts": {"pearson": 0.3}, "overall": 0.6}
    counts = {"best_epoch": 1, "epochs": 1, "steps": 2, "combiner_steps": {"summed": 2}}
    seconds = {"training_seconds": 1.0, "examples_per_second": 2.0, "seconds": 3.0}
    lines = summary({"dev": dev, **counts, **seconds} | ({"test": test} if test else {}))
    header, *_ = lines.splitlines()
    assert ("test" in header) == bool(test)
    found = [line for line in lines.splitlines() if line.startswith("blank")]
    assert [line.startswith(str(blank)) for line in found] == [True] * bool(blank)


OWN = TaskDescription("mine", "similarity", "m.csv", ("t", "u"), "y").to_json()


@pytest.mark.parametrize(
    ("settings", "stored"),
    [
        ({"data": "/home/someone/cs224n"}, {"data": "cs224n"}),
        ({"encoder": "someone/a-model-of-the-hub"}, {}),
        ({"encoder": str(Path(__file__).parent)}, {"encoder": "reports"}),
        (
            {"tasks": ("mine",), "own_tasks": {"mine": OWN | {"train": "/home/someone/m.csv"}}},
            {"own_tasks": {"mine": OWN | {"train": "m.csv"}}},
        ),
    ],
    ids=["data", "hub", "local encoder", "own tasks"],
)
def test_a_cell_has_the_whole_configuration_without_paths_of_the_machine(
    tmp_path, settings, stored
):
    config = replace(SINGLE, seed=3, **settings)
    write_json(tmp_path / "config.json", config.to_json())
    counts = {"best_epoch": 1, "epochs": 1, "steps": 9, "combiner_steps": {"sum": 9}}
    seconds = dict.fromkeys(("training_seconds", "examples_per_second", "seconds"), 1.5)
    metrics = {"dev": {"sts": {"pearson": 0.5}}, **counts, **seconds}
    assert metrics.keys() == Metrics.__annotations__.keys()
    write_json(tmp_path / "metrics.json", metrics)
    assert cell(tmp_path) == {"config": config.to_json() | stored} | metrics
    json.dumps(cell(tmp_path))


def test_an_unfinished_run_has_no_cell(tmp_path):
    with pytest.raises(RunError, match="expected a finished run"):
        cell(tmp_path)
