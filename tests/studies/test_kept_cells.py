"""Kept cells: impossible ones are refused, deleted ones are run again."""

from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import UserError
from common.files import read_json, write_json
from multitask.config_tasks import without_paths
from multitask.settings.config import RunConfig
from reports.cells import read_cell
from studies import STUDIES, runner
from studies.bees.cells import ENSEMBLE, SEEDS
from studies.bees.cells import cells as bees_cells
from studies.reproduce import reproduce, requested_seeds
from studies.results import Cell, Results
from studies.runner import run_cells, training
from studies.study import StudyRequest, find_study
from tasks.metrics import LEADERBOARD

ROOT = Path(__file__).parents[2]
BASE = RunConfig(mode="single", tasks=("sts",), encoder="tiny", limit=4000)
STS = {"sts": {"pearson": 0.5, "spearman": 0.5}}


ONE = Cell("one", BASE, (11711,), training)


def keep(one: Cell, results: Path, figures=None) -> Path:
    """Keep every seed of a cell."""
    file = results / f"{one.name}.json"
    seeds = {str(seed): figures or {"dev": STS} for seed in one.seeds}
    write_json(file, {"config": without_paths(one.config), "seeds": seeds})
    return file


def kept(one: Cell, results: Path) -> list[int]:
    return sorted(Results(results).figures_by_seed(one))


# Impossible cells


@pytest.mark.parametrize("content", [{"seeds": {}}, {"config": {}}, {"config": {}, "seeds": [1]}])
def test_a_file_that_is_not_a_cell_is_refused(tmp_path, content):
    write_json(tmp_path / "one.json", content)
    with pytest.raises(UserError, match=r"one\.json: expected a cell with .* found none"):
        kept(ONE, tmp_path)


def test_the_committed_cells_have_todays_settings():
    kept = {file: read_json(file) for file in (ROOT / "results").rglob("*.json")}
    cells = [file for file, content in kept.items() if {"config", "members"} & content.keys()]
    assert cells
    for file in cells:
        config = read_cell(file).get("config", {})
        if "mode" in config and "members" not in config:
            assert RunConfig(**config).to_json() == config, file


# Missing runs


def test_only_the_seeds_that_a_cell_lacks_are_run(tmp_path):
    done = []

    def work(config, folder):
        done.append(config.seed)
        folder.mkdir(parents=True)
        return {"dev": STS}

    one = Cell("few", BASE, (1, 2), work)
    keep(replace(one, seeds=(2,)), tmp_path)
    assert run_cells([one], Results(tmp_path), tmp_path / "runs", record_drawn=False) == []
    assert (done, kept(one, tmp_path)) == ([1], [1, 2])


def test_a_teacher_whose_folder_is_gone_is_announced_and_trained_again(tmp_path, capsys):
    done = []

    def work(config, folder):
        done.append(folder.name)
        folder.mkdir(parents=True)
        return {"dev": STS}

    teacher = Cell("teacher", BASE, (11711,), work, keeps_folder=True)
    names = {"teacher": ("teacher-seed11711",)}
    student = Cell("student", BASE.changed(**names), (1,), work, keeps_folder=True)
    student = replace(student, teachers=(teacher,))
    keep(teacher, tmp_path)
    assert run_cells([student], Results(tmp_path), tmp_path / "runs", record_drawn=False) == []
    assert done == ["teacher-seed11711", "student-seed1"]
    line = "teacher-seed11711: expected the finished run, from which student starts or learns"
    assert line in capsys.readouterr().out


def test_more_seeds_than_a_cell_has_of_its_own():
    def seeds(name, own, count):
        return requested_seeds(Cell(name, BASE, own, training), count, find_study("lacon"))

    assert seeds("main", (11711, 2), 1) == (11711,)
    assert seeds("main", (11711, 2), 5) == (11711, 2, 1, 3, 4)
    assert seeds("main", tuple(range(1, 7)), 10) == tuple(range(1, 11))
    assert seeds("sweep-tau-1", (1, 2, 3), 6) == (1, 2, 3)


# Tables without training


def merged(members: dict[str, list[str]]) -> dict:
    """What is kept of an ensemble of runs that all have the same figures."""
    dev = {task: {LEADERBOARD[task]: 0.5} for task in members}
    parts = {
        task: {"weights": {}, "dev": dict.fromkeys(names, dev[task])}
        for task, names in members.items()
    }
    overall = {"overall": 0.5, "overall_plain_mean": 0.5} if len(members) == 3 else {}
    return {"dev": dev | overall, "members": parts}


def test_the_ensemble_of_bees_is_left_out_without_one_of_its_members(tmp_path):
    results = tmp_path / "bees"
    results.mkdir()
    request = StudyRequest(BASE, results, tmp_path / "runs", stored_only=True)
    members = {row for rows in ENSEMBLE.values() for row in rows}
    for one in bees_cells(request):
        if one.name in {"M4", *members}:
            dev = {task: {LEADERBOARD.get(task, "accuracy"): 0.5} for task in one.config.tasks}
            figures = {"dev": dev, "epochs": 1, "training_seconds": 60.0}
            keep(replace(one, seeds=SEEDS[:1]), results, figures)
    names = {t: [f"{row}-seed{SEEDS[0]}" for row in rows] for t, rows in ENSEMBLE.items()}
    write_json(results / "ensemble.json", merged(names))
    (results / "confusion.png").write_text("of M14")
    ensemble = "The ensemble of the first seed"
    assert ensemble in reproduce(find_study("bees"), request)
    assert (results / "confusion.png").exists()
    (results / "M14.json").unlink()
    text = reproduce(find_study("bees"), request)
    assert "| M4 | mean pooling, sentiment | 51.3 / 50.0 |" in text
    assert "| M14 | SimCSE, SMART, sentiment | 53.3 /  |" in text
    assert ensemble not in text
    assert not (results / "confusion.png").exists()
    assert not request.runs.exists()


@pytest.mark.parametrize("table", STUDIES)
def test_kept_only_trains_nothing(table, reproducing, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "complete", None)
    results = tmp_path / table.replace("-", "_")
    results.mkdir()
    status, shown = reproducing(table, "--stored-only")()
    assert status == 0, shown.err
    text = find_study(table).page_path(results).read_text()
    assert "--stored-only" not in text
    assert text.strip() in shown.out
    assert not (tmp_path / "runs").exists()
