"""Kept cells: edited ones are refused, those of mended faults are left out and run again."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cell_files import TODAY, keep_seeds

from common.errors import UserError
from common.json_files import SEAL, read_json, write_json
from multitask.config import RunConfig
from reports.cells import as_kept, read_cell, write_cell
from studies import best, regularisation, seeds
from studies.bees import reproduce as bees
from studies.bees.rows import ENSEMBLE, SEEDS
from studies.cell_store import Cell, kept_cell, read_cells
from studies.faults import FAULTS, fault_of, left_out
from studies.seeds import SeedCell, kept, run_seed_cells
from studies.study_request import StudyRequest
from tasks.metrics import LEADERBOARD

ROOT = Path(__file__).parents[2]
BASE = RunConfig(mode="single", tasks=("sts",), encoder="tiny", limit=4000, linear="mkl")
OLD = {"date": "2026-11-22"}
STS = {"sts": {"pearson": 0.5, "spearman": 0.5}}


def keep(one: Cell, results: Path, date=TODAY, dev=STS) -> Path:
    file = results / f"{one.name}.json"
    write_cell(file, {"config": as_kept(one.config), "dev": dev, "environment": date})
    return file


# Edited cells


def test_an_edited_cell_is_refused(tmp_path):
    file = keep(Cell("one", BASE), tmp_path)
    content = read_json(file)
    content["dev"]["sts"]["pearson"] = 0.9
    write_json(file, content)
    for read in (kept_cell, lambda one, results: read_cells([one], results)):
        with pytest.raises(UserError, match=r"one\.json: edited: .* delete it and run its command"):
            read(Cell("one", BASE), tmp_path)


def test_a_cell_without_a_checksum_is_refused(tmp_path):
    file = keep(Cell("one", BASE), tmp_path)
    content = read_json(file)
    del content[SEAL]
    write_json(file, content)
    with pytest.raises(UserError, match=r"one\.json: expected its sha256 .* found none; delete it"):
        kept_cell(Cell("one", BASE), tmp_path)


def test_an_edited_cell_of_seeds_is_refused(tmp_path):
    one = SeedCell("few", BASE, (1, 2))
    file = tmp_path / "few.json"
    keep_seeds(file, as_kept(BASE), {"1": {"dev": STS}})
    assert list(kept(one, tmp_path)) == [1]
    file.write_text(file.read_text().replace("0.5", "0.9"))
    with pytest.raises(UserError, match=r"few\.json: edited"):
        kept(one, tmp_path)
    with pytest.raises(UserError, match=r"few\.json: edited"):
        run_seed_cells([one], tmp_path, tmp_path / "runs")


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), 1.5, -1.5])
def test_figures_that_cannot_be_are_refused_with_their_file(tmp_path, figure):
    keep(Cell("one", BASE), tmp_path, dev={"sts": {"pearson": figure}})
    with pytest.raises(UserError, match=r"one\.json: pearson: expected a .*number.*; delete it"):
        read_cells([Cell("one", BASE)], tmp_path)
    keep_seeds(tmp_path / "few.json", as_kept(BASE), {"1": {"test": {"sts": {"pearson": figure}}}})
    with pytest.raises(UserError, match=r"few\.json: pearson: expected a .*number"):
        kept(SeedCell("few", BASE, (1,)), tmp_path)


def test_the_repositorys_cells_are_as_their_runs_wrote_them():
    files = [
        file
        for file in sorted((ROOT / "results").rglob("*.json"))
        if {"config", "members"} & read_json(file).keys()
    ]
    assert len(files) > 500
    for file in files:
        read_cell(file)


# Mended faults


@pytest.mark.parametrize(
    ("changes", "date", "expected"),
    [
        ({"mode": "pretrain", "objective": "simcse"}, "2026-11-22", "pre-training read --limit"),
        ({"mode": "pretrain", "objective": "simcse"}, "2026-11-21", None),  # before the fault
        ({"mode": "pretrain", "objective": "simcse"}, "2026-11-22T08:00:00+00:00", None),
        ({"mode": "pretrain", "objective": "simcse", "limit": None}, "2026-11-22", None),
        ({"smart_weight": {"sts": 3.0}}, "2026-11-22", "SMART's noise"),
        ({"smart_weight": {"sts": 3.0}}, "2026-11-23", "SMART's noise"),  # at its beginning
        ({"smart_weight": {"sts": 3.0}}, "2026-11-23T05:00:00+00:00", None),
        ({"smart_weight": {"sts": 0.0}}, "2026-11-22", None),
        ({"smart_weight": {"sts": 3.0}}, "", "SMART's noise"),  # made at an unknown time
        ({"sampling": "hybrid"}, "2026-11-22", "of tasks cut to one size"),
        ({"sampling": "hybrid"}, "2026-11-23T06:00:00+00:00", None),
        ({"sampling": "hybrid", "limit": None}, "2026-11-22", None),
        ({"schedule": "first-then-joint"}, "2026-11-22", "of tasks cut to one size"),
        ({"schedule": "first-then-joint", "first_task": "sts"}, "2026-11-22", None),
        ({"seed": 1}, "2026-11-21", "heads began alike"),
        ({"seed": 1}, "2026-11-22", None),
        ({}, "2026-11-21", None),
        ({}, "", None),
    ],
    ids=str,
)
def test_which_cells_a_fault_touches(changes, date, expected):
    found = fault_of(BASE.to_json() | changes, date)
    assert found is None if expected is None else found.what.startswith(expected)


def test_configurations_of_older_versions_lack_keys():
    assert (
        fault_of({"mode": "single", "seed": 11711, "sampling": "round-robin"}, "2026-11-21") is None
    )


def test_how_many_are_left_out_and_why():
    assert left_out([]) == ""
    smart, hybrid = FAULTS[1], FAULTS[2]
    text = left_out([smart, hybrid, smart])
    assert ": 3. SMART's noise was added" in text
    assert "(mended 23 November 2026): 2; of tasks" in text
    assert "\n" not in text


def test_a_cell_that_starts_from_a_run_of_a_fault_is_left_out(tmp_path):
    before = Cell("simcse", replace(BASE, mode="pretrain", objective="simcse"))
    one = Cell("M13", replace(BASE, init="runs/simcse"), before)
    keep(before, tmp_path, OLD)
    keep(one, tmp_path, OLD)
    assert not kept_cell(before, tmp_path)
    assert not kept_cell(one, tmp_path)
    keep(before, tmp_path)
    assert kept_cell(before, tmp_path)
    assert not kept_cell(one, tmp_path), "it started from the run before"
    (tmp_path / "simcse.json").unlink()
    assert not kept_cell(one, tmp_path)
    keep(one, tmp_path)
    assert kept_cell(one, tmp_path)
    assert list(read_cells([before, one], tmp_path)) == ["M13"]


def test_a_seed_that_a_fault_touches_is_run_again(tmp_path, monkeypatch):
    config, done = replace(BASE, smart_weight={"sts": 1.0}), []
    file, results = tmp_path / "few.json", tmp_path

    def work(config, folder):
        done.append(config.seed)
        folder.mkdir(parents=True)
        return {"dev": STS, "environment": TODAY}

    monkeypatch.setattr(seeds, "keep_ids", lambda *_: None)
    one = SeedCell("few", config, (1, 2), work)
    figures = {"dev": STS}
    keep_seeds(file, as_kept(config), {"1": figures | {"environment": OLD}, "2": figures})
    assert list(kept(one, results)) == [2]
    assert run_seed_cells([one], results, tmp_path / "runs") == []
    assert (done, sorted(kept(one, results))) == ([1], [1, 2])


@pytest.fixture
def regularise(tmp_path, monkeypatch, capsys):
    def run(*argv):
        flags = ["--encoder", "tiny", "--limit", "24", "--precision", "fp32", "--data", "sample"]
        folders = ["--results", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
        monkeypatch.setattr(sys, "argv", ["study", *flags, *folders, *argv])
        regularisation.main()
        return capsys.readouterr().out

    return run


NAMES = ["sts-plain-seed11711", "sts-smart-seed11711", "sts-both-seed11711"]


def as_of(date: str, monkeypatch) -> None:
    """Runs from now on begin at this moment."""
    monkeypatch.setattr("multitask.trainer.now", lambda: date)


def test_a_study_leaves_out_cells_of_a_fault_and_runs_them_again(regularise, tmp_path, monkeypatch):
    results = tmp_path / "results"
    with monkeypatch.context() as patch:
        as_of("2026-11-22T00:00:00+00:00", patch)
        regularise("--cells", *NAMES)
    figure = results / "smart-weight-sts.png"
    figure.write_text("of the cells before")
    text = regularise("--kept-only")
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if "|" in line}
    assert "(1)" in rows["-"]
    assert "(1)" not in rows["SMART"] + rows["SimCSE + SMART"]
    assert "from: 2. SMART's noise" in text
    assert (results / "table.md").read_text().strip() == text.strip()
    assert not figure.exists(), "it showed a cell that is left out"
    old = {file.name: file.read_bytes() for file in results.glob("*-seed*.json")}
    assert "(1)" in regularise("--cells", *NAMES)  # and their run folders are not taken either
    new = {file.name: file.read_bytes() for file in results.glob("*-seed*.json")}
    again = {name for name in old if old[name] != new[name]}
    smart = {"sts-smart-seed11711.json", "sts-both-seed11711.json"}
    assert again == smart | {"sts-pretraining-seed11711.json"}, "texts of it were of a fault, too"
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
    content = {"config": as_kept(one.config), "dev": dev, "epochs": 1, "training_seconds": 60.0}
    write_cell(results / f"{one.name}.json", content | {"environment": OLD})


def test_soups_and_ensembles_of_cells_that_are_left_out_are_left_out(tmp_path):
    results = tmp_path / "best"
    results.mkdir()
    asked = StudyRequest(replace(BASE, tasks=()), results, tmp_path / "runs", kept_only=True)
    every = best.cells(asked.base, asked.runs)
    for one in every:
        keep_with_figures(one, results)
    members = {t: [c.name for c in every if c.config.tasks == (t,)] for t in LEADERBOARD}
    for task, names in members.items():
        write_cell(results / f"soup-of-{task}.json", merged({task: names}))
    write_cell(results / "ensemble.json", merged(members))
    text = best.reproduce(asked, "command", "notes")
    shown = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")]
    assert {"soup of sst", "soup of sts", "qqp-seed1"} <= set(shown)
    assert not {"soup of qqp", "ensemble", "qqp-smart"} & set(shown)
    assert "from: 1. SMART's noise" in text
    assert not asked.runs.exists()


def test_the_ensemble_of_bees_is_left_out_with_its_members(tmp_path):
    results = tmp_path / "bees"
    results.mkdir()
    asked = StudyRequest(BASE, results, tmp_path / "runs", kept_only=True)
    reproduction = bees.Reproduction(asked)
    for row in ("M4", *ENSEMBLE["sst"], *ENSEMBLE["sts"]):
        keep_with_figures(reproduction.cell(row), results)
    members = {t: [f"{row}-seed{SEEDS[0]}" for row in rows] for t, rows in ENSEMBLE.items()}
    write_cell(results / "ensemble.json", merged(members))
    (results / "confusion.png").write_text("of M14")
    text = bees.reproduce(asked, "command", "notes")
    assert "| M4 | mean pooling, sentiment | 51.3 / 50.0 |" in text
    assert "| M13 | SimCSE, similarity |  |  | 81.0 /  |" in text
    assert "The ensemble of the first seed" not in text
    assert "from: 6. " in text
    assert not (results / "confusion.png").exists()
    assert not asked.runs.exists()


@pytest.mark.parametrize("table", ["bees", "best", "scl-moo", "supercontext", "lacon"])
def test_kept_only_trains_nothing(table, tmp_path, capsys, monkeypatch):
    import cli

    monkeypatch.setattr("studies.cells.complete", None)
    monkeypatch.setattr("studies.seeds.complete", None)
    place = ("--results", str(tmp_path / table), "--runs", str(tmp_path / "runs"))
    (tmp_path / table).mkdir()
    command = ["--mode", "reproduce", "--table", table, "--kept-only", *place]
    assert cli.main(command) == 0, capsys.readouterr().err
    text = (tmp_path / f"{table}.md").read_text()
    assert "--kept-only" not in text
    assert text.strip() in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
