"""Kept cells: edited ones are refused, those of fixed faults are left out and run again."""

from dataclasses import replace
from pathlib import Path

import pytest
from cell_files import TODAY, keep_seeds

from common.errors import UserError
from common.json_files import SEAL, read_json, write_json
from multitask.config import RunConfig
from multitask.stored_config import without_paths
from reports.cells import read_cell, write_cell
from studies import STUDIES, find_study, runner
from studies.bees.cells import ENSEMBLE, SEEDS
from studies.bees.cells import cells as bees_cells
from studies.faults import FAULTS, find_fault, left_out_notice
from studies.reproduce import reproduce
from studies.results import Cell, Results
from studies.runner import run_cells
from studies.study import StudyRequest
from tasks.metrics import LEADERBOARD

ROOT = Path(__file__).parents[2]
BASE = RunConfig(mode="single", tasks=("sts",), encoder="tiny", limit=4000, linear="mkl")
OLD = {"date": "2026-11-22"}
STS = {"sts": {"pearson": 0.5, "spearman": 0.5}}


ONE = Cell("one", BASE, (11711,))


def keep(one: Cell, results: Path, date=TODAY, figures=None) -> Path:
    """Keep every seed of a cell, made at a date."""
    found = (figures or {"dev": STS}) | {"environment": date}
    file = results / f"{one.name}.json"
    seeds = {str(seed): found for seed in one.seeds}
    write_cell(file, {"config": without_paths(one.config), "seeds": seeds})
    return file


def kept(one: Cell, results: Path) -> list[int]:
    return sorted(Results(results).figures_by_seed(one))


# Edited cells


def test_a_cell_that_is_edited_or_lost_its_checksum_is_refused(tmp_path):
    file = keep(ONE, tmp_path)
    assert kept(ONE, tmp_path) == [11711]
    file.write_text(file.read_text().replace("0.5", "0.9"))
    with pytest.raises(UserError, match=r"one\.json: edited: .* delete it and run its command"):
        kept(ONE, tmp_path)
    with pytest.raises(UserError, match=r"one\.json: edited"):
        run_cells([ONE], Results(tmp_path), tmp_path / "runs")
    content = read_json(keep(ONE, tmp_path))
    del content[SEAL]
    write_json(file, content)
    with pytest.raises(UserError, match=r"one\.json: expected its sha256 .* found none; delete it"):
        kept(ONE, tmp_path)


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), 1.5, -1.5])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_impossible_figures_are_refused_with_their_file(tmp_path, split, figure):
    keep(ONE, tmp_path, figures={split: {"sts": {"pearson": figure}}})
    with pytest.raises(UserError, match=r"one\.json: pearson: expected a .*number.*; delete it"):
        kept(ONE, tmp_path)


@pytest.mark.parametrize("content", [{"seeds": {}}, {"config": {}}, {"config": {}, "seeds": [1]}])
def test_a_file_that_is_not_a_cell_is_refused(tmp_path, content):
    write_cell(tmp_path / "one.json", content)
    with pytest.raises(UserError, match=r"one\.json: expected a cell with .* found none"):
        kept(ONE, tmp_path)


def test_the_committed_cells_have_valid_checksums():
    kept = {file: read_json(file).keys() for file in (ROOT / "results").rglob("*.json")}
    files = [file for file, keys in kept.items() if {"config", "members"} & keys]
    assert len(files) > 500
    for file in files:
        read_cell(file)


# Mended faults


@pytest.mark.parametrize(
    ("changes", "date", "expected"),
    [
        ({"mode": "pretrain", "objective": "simcse"}, "2026-11-22", "pre-training read --limit"),
        ({"mode": "pretrain", "objective": "simcse"}, "2026-11-21", None),  # before the fault
        ({"mode": "pretrain", "objective": "simcse", "limit": None}, "2026-11-22", None),
        ({"smart_weight": {"sts": 3.0}}, "2026-11-22", "SMART's noise"),
        ({"smart_weight": {"sts": 3.0}}, "2026-11-23", "SMART's noise"),  # at its beginning
        ({"smart_weight": {"sts": 0.0}}, "2026-11-22", None),
        ({"sampling": "hybrid"}, "2026-11-22", "of tasks cut to one size"),
        ({"sampling": "hybrid", "limit": None}, "2026-11-22", None),
        ({"schedule": "first-then-joint"}, "2026-11-22", "of tasks cut to one size"),
        ({"seed": 1}, "2026-11-21", "heads began alike"),
        ({}, "2026-11-21", None),
    ],
    ids=str,
)
def test_cells_that_a_fault_affects(changes, date, expected):
    found = find_fault(BASE.to_json() | changes, date)
    assert found is None if expected is None else found.description.startswith(expected)


def test_configurations_of_older_versions_lack_keys():
    older = {"mode": "single", "seed": 11711, "sampling": "round-robin"}
    assert find_fault(older, "2026-11-21") is None


def test_the_notice_counts_omitted_runs_by_fault():
    assert left_out_notice([]) == ""
    smart, hybrid = FAULTS[1], FAULTS[2]
    text = left_out_notice([smart, hybrid, smart])
    assert ": 3. SMART's noise was added" in text
    assert "(fixed 23 November 2026): 2; of tasks" in text
    assert "\n" not in text


def test_a_cell_that_starts_from_a_run_of_a_fault_is_left_out(tmp_path):
    before = Cell("simcse", BASE.changed(mode="pretrain", objective="simcse"), (11711,))
    one = Cell("M13", BASE, (11711,), base_cell=before)
    keep(before, tmp_path, OLD)
    keep(one, tmp_path, OLD)
    assert not kept(before, tmp_path)
    assert not kept(one, tmp_path)
    keep(before, tmp_path)
    assert kept(before, tmp_path)
    assert not kept(one, tmp_path), "it started from the run before"
    (tmp_path / "simcse.json").unlink()
    assert not kept(one, tmp_path)
    keep(one, tmp_path)
    assert kept(one, tmp_path)
    assert list(Results(tmp_path).figures_by_run([before, one])) == ["M13-seed11711"]


def test_an_affected_seed_is_run_again(tmp_path, monkeypatch):
    config, done = replace(BASE, smart_weight={"sts": 1.0}), []

    def work(config, folder):
        done.append(config.seed)
        folder.mkdir(parents=True)
        return {"dev": STS, "environment": TODAY}

    monkeypatch.setattr(runner, "record_examples", lambda *_: None)
    one = Cell("few", config, (1, 2), work)
    seeds = {"1": {"dev": STS, "environment": OLD}, "2": {"dev": STS}}
    keep_seeds(tmp_path / "few.json", without_paths(config), seeds)
    assert kept(one, tmp_path) == [2]
    assert run_cells([one], Results(tmp_path), tmp_path / "runs") == []
    assert (done, kept(one, tmp_path)) == ([1], [1, 2])


def test_a_teacher_whose_folder_is_gone_is_announced_and_trained_again(tmp_path, capsys):
    done = []

    def work(config, folder):
        done.append(folder.name)
        folder.mkdir(parents=True)
        return {"dev": STS, "environment": TODAY}

    teacher = Cell("teacher", BASE, (11711,), work, keeps_folder=True)
    names = {"teacher": ("teacher-seed11711",)}
    student = Cell("student", BASE.changed(**names), (1,), work, keeps_folder=True)
    student = replace(student, teachers=(teacher,))
    keep(teacher, tmp_path)
    assert run_cells([student], Results(tmp_path), tmp_path / "runs", record_drawn=False) == []
    assert done == ["teacher-seed11711", "student-seed1"]
    line = "teacher-seed11711: expected the finished run, from which student starts or learns"
    assert line in capsys.readouterr().out


def test_a_study_leaves_out_cells_of_a_fault_and_runs_them_again(
    reproducing, tmp_path, monkeypatch
):
    tiny = ("--encoder", "tiny", "--limit", 24, "--precision", "fp32", "--seeds", 1)
    regularise = reproducing("regularisation", *tiny)
    rows = ("--rows", "sts-plain", "sts-smart", "sts-both")
    results, page = tmp_path / "regularisation", tmp_path / "regularisation.md"
    with monkeypatch.context() as patch:
        patch.setattr("multitask.trainer.now", lambda: "2026-11-22T00:00:00+00:00")
        assert regularise(*rows)[0] == 0
    figure = results / "smart-weight-sts.png"
    figure.write_text("of the cells before")
    assert regularise("--stored-only")[0] == 0
    lines = [line for line in page.read_text().splitlines() if "|" in line]
    shown = {line.split("|")[1].strip(): line for line in lines}
    assert "(1)" in shown["-"]
    assert "(1)" not in shown["SMART"] + shown["SimCSE + SMART"]
    assert "from: 5. SMART's noise" in page.read_text()
    assert not figure.exists(), "it showed a cell that is left out"
    old = {file.stem: file.read_bytes() for file in results.glob("sts-*.json")}
    assert regularise(*rows)[0] == 0  # and their run folders are not taken either
    new = {file.stem: file.read_bytes() for file in results.glob("sts-*.json")}
    again = {name for name in old if old[name] != new[name]}
    assert again == set(old) - {"sts-plain"}, "texts of the pre-training were of a fault, too"
    assert figure.exists()


# Tables without training


def merged(members: dict[str, list[str]]) -> dict:
    """What is kept of an ensemble, or a soup, of runs that all have the same figures."""
    dev = {task: {LEADERBOARD[task]: 0.5} for task in members}
    parts = {
        task: {"weights": {}, "dev": dict.fromkeys(names, dev[task])}
        for task, names in members.items()
    }
    overall = {"overall": 0.5, "overall_plain_mean": 0.5} if len(members) == 3 else {}
    return {"dev": dev | overall, "members": parts}


def keep_with_figures(one: Cell, results: Path) -> None:
    (task,) = one.config.tasks
    dev = {task: {LEADERBOARD.get(task, "accuracy"): 0.5}}
    keep(one, results, OLD, {"dev": dev, "epochs": 1, "training_seconds": 60.0})


def test_the_ensemble_of_bees_is_left_out_with_its_members(tmp_path):
    results = tmp_path / "bees"
    results.mkdir()
    request = StudyRequest(BASE, results, tmp_path / "runs", stored_only=True)
    for one in bees_cells(request):
        if one.name in ("M4", *ENSEMBLE["sst"], *ENSEMBLE["sts"]):
            keep_with_figures(replace(one, seeds=SEEDS[:1]), results)
    members = {t: [f"{row}-seed{SEEDS[0]}" for row in rows] for t, rows in ENSEMBLE.items()}
    write_cell(results / "ensemble.json", merged(members))
    (results / "confusion.png").write_text("of M14")
    text = reproduce(find_study("bees"), request)
    assert "| M4 | mean pooling, sentiment | 51.3 / 50.0 |" in text
    assert "| M13 | SimCSE, similarity |  |  | 81.0 /  |" in text
    assert "The ensemble of the first seed" not in text
    assert "from: 6. " in text
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
