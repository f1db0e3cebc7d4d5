"""Runs the rows of BEES and writes its tables and figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from minbert.json_files import read_json
from multitask.config import RunConfig
from reports.ensembles import ensemble_runs
from reports.figures import confusion, similarity_distribution
from reports.store import MAIN, read_run
from reports.systems import group_runs, score_system
from studies.bees import CURVES, ENSEMBLE, EVERY, SEEDS, row_cell
from studies.bees_table import report
from studies.cells import Cell, read_cells, run_cells
from studies.regularisation import draw_curve


@dataclass(frozen=True)
class Reproduction:
    """Which rows and seeds, with what; `results` keeps a file a cell, `runs` their folders."""

    rows: tuple[str, ...]
    seeds: int
    base: RunConfig
    epochs: int | None
    results: Path
    runs: Path

    def cells(self) -> list[Cell]:
        """Seed after seed, so that every row has a figure early."""
        return [
            row_cell(name, seed, self.base, self.runs, self.epochs)
            for seed in SEEDS[: self.seeds]
            for name in self.rows
        ]


def reproduce(asked: Reproduction, command: str, notes: str) -> str:
    """Run what is not there yet; writes and returns the report of all finished cells."""
    run_cells(asked.cells(), asked.results, asked.runs)
    cells = read_cells(asked.results, [f"{name}-seed{seed}" for name in EVERY for seed in SEEDS])
    ensemble = merge_members(asked)
    draw_figures(asked, {name: kept["dev"] for name, kept in cells.items()})
    text = report(cells, ensemble, command, notes)
    file = asked.results.with_suffix(".md")
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_text(text, "utf-8")
    temporary.replace(file)
    return text


def merge_members(asked: Reproduction) -> dict[str, Any] | None:
    """BEES' ensemble of the first seed's runs, its test predictions included; kept in `results`.

    None until all its members are there.
    """
    members = {
        task: [asked.runs / f"{name}-seed{SEEDS[0]}" for name in names]
        for task, names in ENSEMBLE.items()
    }
    kept = asked.results / "ensemble.json"
    every = [run for several in members.values() for run in several]
    if not all((run / "metrics.json").exists() for run in every):
        from minbert.errors import UserError

        return read_json(kept, UserError) if kept.exists() else None
    from minbert.json_files import write_json

    result = ensemble_runs(members, "vote", 0, asked.runs / "ensemble", overwrite=True)
    write_json(kept, result)
    return result


def draw_figures(asked: Reproduction, dev: dict[str, Any]) -> None:
    """Figures 2 and 3 (weights of SMART), 4 (confusion of M14) and 5 (similarities of M17)."""
    for task, rows in CURVES.items():
        found = {w: dev.get(f"{name}-seed{SEEDS[0]}") for w, name in rows.items()}
        points = [(w, one[task][MAIN[task]]) for w, one in found.items() if one is not None]
        if len(points) > 1:
            weights, scores = zip(*points, strict=True)
            draw_curve(weights, scores, task, asked.results / f"smart-weight-{task}.png")
    for name, draw, file in (
        ("M14", lambda scored: confusion(scored, "sst"), "confusion.png"),
        ("M17", lambda scored: similarity_distribution([scored]), "similarities.png"),
    ):
        folder = asked.runs / f"{name}-seed{SEEDS[0]}"
        if (folder / "metrics.json").exists():
            (system,) = group_runs([(name, read_run(folder))])
            save(draw(score_system(system)), asked.results / file)


def save(figure: Any, file: Path) -> None:
    """As a PNG, written aside and renamed."""
    temporary = file.with_name(f"{file.stem}.tmp{file.suffix}")
    figure.savefig(temporary, dpi=130)
    temporary.replace(file)


def names_of(rows: Sequence[str] | None, further: bool) -> tuple[str, ...]:
    """The rows asked for; without any, M1 to M18, and all others where `further`."""
    if rows:
        return tuple(rows)
    return tuple(name for name in EVERY if further or (name[0] == "M" and "-" not in name))
