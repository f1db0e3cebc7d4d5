"""The tables in results/ are those of the kept cells there, without cells of mended faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from multitask.config import RunConfig
from reports.cells import read_cell
from reports.tables import markdown_table
from studies import best, mixing, regularisation
from studies.bees.reproduce import Reproduction
from studies.bees.table import further_table, table_one
from studies.cell_store import Cell, faults_of, made_of, read_cells
from studies.faults import left_out
from studies.study_request import StudyRequest

RESULTS = Path(__file__).parents[2] / "results"
RUNS = Path("runs")


def base_of(file: str) -> RunConfig:
    """What a study was asked for, by a cell that no fault touches."""
    config = read_cell(RESULTS / file)["config"]
    asked = {key: config[key] for key in ("data", "limit", "encoder", "precision")}
    return RunConfig(mode="single", tasks=(), **asked)


def bees() -> tuple[str, list[Cell], list[str]]:
    config = read_cell(RESULTS / "bees" / "M4-seed11711.json")["config"]
    base = base_of("bees/M4-seed11711.json")
    asked = Reproduction(StudyRequest(base, RESULTS / "bees", RUNS, epochs=config["epochs"]))
    cells = read_cells(asked.every(), asked.results)
    ensemble = read_cell(RESULTS / "bees" / "ensemble.json")
    tables = [
        table_one(cells, ensemble if made_of(ensemble, cells) else None),
        further_table(cells, "T3", "paper / ours"),
        further_table(cells, "T4", "paper / ours"),
    ]
    return "bees", asked.every(), [markdown_table(*table) for table in tables]


def best_recipe() -> tuple[str, list[Cell], list[str]]:
    every, folder = best.cells(base_of("best/sts-seed1.json"), RUNS), RESULTS / "best"
    kept = read_cells(every, folder)
    files = {name: folder / f"{best.file_of(name)}.json" for name in best.MERGED}
    merged = {n: read_cell(f) for n, f in files.items() if made_of(read_cell(f), kept)}
    page = best.report(kept, merged, "", "")
    return "best", every, [line for line in page.splitlines() if line.startswith("|")]


def regularised() -> tuple[str, list[Cell], list[str]]:
    base = base_of("regularisation/sts-plain-seed11711.json")
    every = regularisation.build_cells(base, RUNS)
    table = regularisation.table(read_cells(every, RESULTS / "regularisation"))
    return "regularisation", every, [table]


@pytest.mark.parametrize("study", [bees, best_recipe, regularised])
def test_tables_are_of_kept_cells_and_say_what_is_left_out(study):
    name, every, parts = study()
    page = RESULTS / f"{name}.md"
    text = (page if page.exists() else RESULTS / name / "table.md").read_text()
    for part in (*parts, left_out(faults_of(every, RESULTS / name))):
        assert part in text
    shown = [line for line in text.splitlines() if line.startswith("|")]
    if name == "best":
        assert len(shown) == len(parts)


def test_the_table_of_mixtures():
    config = read_cell(RESULTS / "mixing" / "round-robin-joint-sum.json")["config"]
    keys = ("mode", "tasks", "data", "limit", "encoder", "precision", "epochs", "seed")
    base = RunConfig(**{key: config[key] for key in keys})
    cells = [Cell(n, mixing.cell_config(changes, base)) for n, changes in mixing.CELLS.items()]
    text = (RESULTS / "mixing" / "table.md").read_text()
    assert text.strip() == mixing.table(cells, RESULTS / "mixing").strip()
