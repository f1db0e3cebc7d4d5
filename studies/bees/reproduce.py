"""Runs the rows of BEES and writes its tables and figures beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.atomic_files import write_whole
from common.errors import UserError
from reports.cells import read_cell, write_cell
from reports.drawing import save_figure
from reports.ensembles import ensemble_runs
from reports.figures import confusion, similarity_distribution
from reports.store import read_run
from reports.system_scores import Scored, score_systems
from reports.systems import group_runs
from studies.bees.rows import CURVES, ENSEMBLE, EVERY, SEEDS, row_cell
from studies.bees.table import Cells, report
from studies.cell_store import Cell, faults_of, finished_folder, kept_cell, made_of, read_cells
from studies.cells import run_cells
from studies.faults import left_out
from studies.lines import draw_curve
from studies.study_request import StudyRequest
from tasks.metrics import LEADERBOARD


@dataclass(frozen=True)
class Reproduction:
    """What was asked for, and the cells that answer it."""

    asked: StudyRequest

    @property
    def results(self) -> Path:
        return self.asked.results

    @property
    def runs(self) -> Path:
        return self.asked.runs

    def cells(self) -> list[Cell]:
        """Seed after seed, so that every row has a figure early."""
        rows = rows_of(self.asked.rows, self.asked.further)
        return [self.cell(name, seed) for seed in SEEDS[: self.asked.seeds or 1] for name in rows]

    def cell(self, row: str, seed: int = SEEDS[0]) -> Cell:
        return row_cell(row, seed, self.asked.base, self.runs, self.asked.epochs, self.asked.lr)

    def every(self) -> list[Cell]:
        """All cells, asked for or not."""
        return [self.cell(row, seed) for row in EVERY for seed in SEEDS]

    def finished(self) -> list[str]:
        """Names of all cells that are kept, asked for or not.

        Raises UserError for one of another configuration: the report is of one.
        """
        return [one.name for one in self.every() if kept_cell(one, self.results)]

    def folder(self, row: str) -> Path | None:
        """The folder of a row's run with the first seed; None if it is not here."""
        one = self.cell(row)
        return finished_folder(one, self.runs) if kept_cell(one, self.results) else None


def names() -> list[str]:
    """Of all rows."""
    return list(EVERY)


def reproduce(request: StudyRequest, command: str, notes: str) -> str:
    """Run what is not there yet; writes and returns the report of all finished cells."""
    if request.seeds is not None and request.seeds > len(SEEDS):
        raise UserError(f"--seeds: expected {len(SEEDS)} at most, found {request.seeds}")
    asked = Reproduction(request)
    asked.finished()  # a cell of another configuration is refused before hours of work
    if not request.kept_only:
        run_cells(asked.cells(), asked.results, asked.runs)
    cells = read_cells(asked.every(), asked.results)
    ensemble = merge_members(asked, cells)
    draw_figures(asked, {name: kept["dev"] for name, kept in cells.items()})
    faults = left_out(faults_of(asked.every(), asked.results))
    text = report(cells, ensemble, command, notes, faults)
    write_whole(request.report, text)
    return text


def merge_members(asked: Reproduction, cells: Cells) -> Mapping[str, Any] | None:
    """BEES' ensemble of the first seed's runs, its test predictions included; kept in `results`.

    None until all its members are finished; where their folders are not here, or only kept figures
    are asked for, what is kept of it, if it was made of these cells.
    """
    kept = asked.results / "ensemble.json"
    folders = {task: [asked.folder(row) for row in rows] for task, rows in ENSEMBLE.items()}
    members = {task: [f for f in several if f is not None] for task, several in folders.items()}
    whole = all(len(members[task]) == len(rows) for task, rows in ENSEMBLE.items())
    if whole and not asked.asked.kept_only:
        result = ensemble_runs(members, "vote", 0, asked.runs / "ensemble", overwrite=True)
        write_cell(kept, result)
        return result
    found = read_cell(kept) if kept.exists() else None
    return found if found is not None and made_of(found, cells) else None


def draw_figures(asked: Reproduction, dev: Mapping[str, Any]) -> None:
    """Figures 2 and 3 (weights of SMART), 4 (confusion of M14) and 5 (similarities of M17).

    One of cells that are not kept, or no more, goes.
    """
    for task, rows in CURVES.items():
        file = asked.results / f"smart-weight-{task}.png"
        found = {w: dev.get(f"{name}-seed{SEEDS[0]}") for w, name in rows.items()}
        points = [(w, one[task][LEADERBOARD[task]]) for w, one in found.items() if one is not None]
        if len(points) > 1:
            weights, scores = zip(*points, strict=True)
            draw_curve(weights, scores, f"{task} dev {LEADERBOARD[task]}", file)
        else:
            file.unlink(missing_ok=True)
    for row, name in (("M14", "confusion.png"), ("M17", "similarities.png")):
        if f"{row}-seed{SEEDS[0]}" not in dev:
            (asked.results / name).unlink(missing_ok=True)
    if scored := read_scored(asked, "M14"):
        save_figure(confusion(scored, "sst"), asked.results / "confusion.png")
    if (scored := read_scored(asked, "M17")) and (figure := similarity_distribution([scored])):
        save_figure(figure, asked.results / "similarities.png")


def read_scored(asked: Reproduction, row: str) -> Scored | None:
    """A row's run of the first seed as a system of its own; None if it is not here."""
    folder = asked.folder(row)
    if folder is None:
        return None
    (scored,) = score_systems(group_runs([(row, read_run(folder))]))
    return scored


def rows_of(rows: Sequence[str] | None, further: bool) -> tuple[str, ...]:
    """The rows asked for; without any, M1 to M18, and all others where `further`."""
    if rows:
        return tuple(dict.fromkeys(rows))
    return tuple(name for name in EVERY if further or (name[0] == "M" and "-" not in name))
