"""The cost of a study: examples and steps of runs that are left."""

from dataclasses import replace

from multitask.settings.config import RunConfig
from studies.bees.cells import row_cell
from studies.cost import cost_of, cost_table
from studies.results import Results

BASE = RunConfig(mode="single", tasks=("sst",), encoder="tiny", limit=16, batch_size=8, epochs=2)


def test_examples_and_steps_are_counted_for_all_runs():
    assert cost_of(BASE, 3, {}) == (3, 96, 12)


def test_a_cell_that_cannot_be_run_has_the_reason(tmp_path):
    base = replace(BASE, tasks=())
    cells = [row_cell(name, base, 2) for name in ("M8", "M6")]
    rows = cost_table(cells, Results(tmp_path), tmp_path)[1]
    assert "name the task of the first epochs" in rows[0][1]
    assert rows[1][:2] == ["M6", "5"]


def test_the_table_has_the_runs_that_are_left_and_pre_training_once(tmp_path, monkeypatch):
    base = replace(BASE, mode="single", tasks=())
    cells = [replace(row_cell(name, base, 1), seeds=(11711, 1)) for name in ("M6", "M13", "M16")]
    header, rows = cost_table(cells, Results(tmp_path), tmp_path)
    assert header == ["cell", "runs", "examples", "steps"]
    found = {row[0]: int(row[1]) for row in rows}
    assert found == {"M6": 2, "simcse-sts-cls": 2, "M13": 2, "M16": 2, "all": 8}
    results = Results(tmp_path)
    stored = {"dev": {"sts": {"pearson": 0.5}}}
    results.add(cells[0], 1, stored, tmp_path)
    found = {row[0]: int(row[1]) for row in cost_table(cells, results, tmp_path)[1]}
    assert found == {"M6": 1, "simcse-sts-cls": 2, "M13": 2, "M16": 2, "all": 7}
    monkeypatch.setattr(results, "finished_folder", lambda cell, seed, runs: seed == 1 or None)
    found = {row[0]: int(row[1]) for row in cost_table(cells, results, tmp_path)[1]}
    assert found["simcse-sts-cls"] == 1, "that of the other seed has its folder"
