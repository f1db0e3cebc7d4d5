"""Stored results of a study: one JSON file per cell, with the figures of each seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import UserError
from common.files import file_lock, write_json
from common.settings import accepts
from multitask.config_tasks import without_paths
from multitask.settings.config import RunConfig
from multitask.settings.from_flags import changed_by_flags
from reports.cells import check_config, read_cell, run_of_cell

Figures = dict[str, dict[str, float] | float]  # per task, and overall
Content = Mapping[str, Any]  # the figures of one run
RunFunction = Callable[
    [RunConfig, Path], dict[str, Any]
]  # configuration, run folder -> stored figures


@dataclass(frozen=True)
class Cell:
    """The runs of one configuration with several seeds, and the work done for each.

    A run starts from the run of the cell `base_cell` with the same seed, or else its first seed.
    It learns from all runs of the cells in `teachers`, which the setting `teacher` of its
    configuration names. Unless `keeps_folder` is set, run folders are deleted once their figures
    are stored.
    """

    name: str
    config: RunConfig
    seeds: tuple[int, ...]
    run_function: RunFunction
    base_cell: Cell | None = None
    keeps_folder: bool = False
    teachers: tuple[Cell, ...] = ()

    def run_name(self, seed: int) -> str:
        return f"{self.name}-seed{seed}"

    def run_config(self, seed: int, runs: Path) -> RunConfig:
        """Return the configuration of the run with a seed."""
        config = changed_by_flags(self.config, seed=seed)
        if self.teachers:
            folders = (cell.run_folder(one, runs) for cell, one in self.teacher_runs())
            config = changed_by_flags(config, teacher=tuple(map(str, folders)))
        if self.base_cell is None:
            return config
        return changed_by_flags(
            config, init=str(self.base_cell.run_folder(self.base_cell.seed_for(seed), runs))
        )

    def teacher_runs(self) -> list[tuple[Cell, int]]:
        """Return the runs that this cell's runs learn from, as cells and seeds."""
        return [(cell, seed) for cell in self.teachers for seed in cell.seeds]

    def earlier_runs(self, seed: int) -> list[tuple[Cell, int]]:
        """Return the runs that must be finished before the run with a seed, as cells and seeds."""
        base = self.base_cell
        start = [] if base is None else [(base, base.seed_for(seed))]
        return start + self.teacher_runs()

    def run_folder(self, seed: int, runs: Path) -> Path:
        """Return the run folder of a seed; a temporary folder's name includes a settings digest."""
        if self.keeps_folder:
            return runs / self.run_name(seed)
        return runs / f"{self.run_name(seed)}-{self.run_config(seed, runs).digest()}"

    def seed_for(self, seed: int) -> int:
        """Return the seed of this cell's run from which runs of other cells with `seed` start."""
        return seed if seed in self.seeds else self.seeds[0]

    def every_earlier_run(self, seed: int) -> Iterator[tuple[Cell, int]]:
        """Yield `earlier_runs` and those that they need in turn, the first to be run first."""
        for cell, number in self.earlier_runs(seed):
            yield from cell.every_earlier_run(number)
            yield cell, number


class Results:
    """The stored figures of the cells of a finished or unfinished study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, tuple[float, dict[int, Content]]] = {}

    def file(self, cell: Cell) -> Path:
        return self.folder / f"{cell.name}.json"

    def figures_by_seed(self, cell: Cell) -> dict[int, Content]:
        """Return the figures of a cell by seed.

        Raise UserError if its file has other content or another configuration.
        """
        file = self.file(cell)
        if not file.exists():
            return {}
        known = self._known.get(cell.name)
        changed = file.stat().st_mtime_ns
        if known is None or known[0] != changed:
            content = read_cell(file)
            if not isinstance(content.get("config"), dict):
                raise UserError(f"{file}: expected a cell with a config, found none")
            if not accepts(dict[str, dict[str, Any]], content.get("seeds")):
                raise UserError(f"{file}: expected a cell with figures by seed, found none")
            found = {int(seed): figures for seed, figures in content["seeds"].items()}
            for seed, figures in found.items():
                if "dev" in figures and not accepts(Figures, figures["dev"]):
                    raise UserError(f"{file}: seed {seed}: dev: expected a run's metrics")
            ignored = ("seed", "init")
            check_config(file, cell.config, content["config"], ignored=ignored)
            self._known[cell.name] = changed, found
        return self._known[cell.name][1]

    def add(self, cell: Cell, seed: int, figures: Content, runs: Path) -> None:
        """Store the figures of a run with those of the cell's other seeds."""
        with file_lock(runs / cell.name):
            seeds = {**self.figures_by_seed(cell), seed: figures}
            write_json(self.file(cell), {"config": without_paths(cell.config), "seeds": seeds})

    def values(self, cell: Cell, *keys: str) -> dict[int, Any]:
        """Return a figure, such as (test, sst2, accuracy), for each seed that has it."""
        found: dict[int, Any] = dict(self.figures_by_seed(cell))
        for key in keys:
            found = {seed: inner[key] for seed, inner in found.items() if key in inner}
        return found

    def figures_by_run(self, cells: Iterable[Cell]) -> dict[str, Content]:
        """Return the figures of all finished runs by run name, in the order of the cells."""
        return {
            one.run_name(seed): found
            for one in cells
            for seed, found in sorted(
                self.figures_by_seed(one).items(), key=lambda it: place(one, it[0])
            )
        }

    def measured(self, cells: Iterable[Cell]) -> str:
        """Return the machines, threads and dates of the stored runs; empty without runs."""
        found = [
            figures["environment"]
            for cell in cells
            for figures in self.figures_by_seed(cell).values()
            if "cpu" in figures.get("environment", {})
        ]
        if not found:
            return ""
        machines = {
            f"{one['cpu']} ({one['bfloat16']}), "
            f"{one['cores']} cores, threads per run: {one['threads']}"
            if one.get("gpu", "none") == "none"
            else one["gpu"]
            for one in found
        }
        dates = sorted(one["date"][:10] for one in found)
        when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
        return f"Measured on {'; '.join(sorted(machines))}; {when}."

    def finished_folder(self, cell: Cell, seed: int, runs: Path) -> Path | None:
        """Return the folder of a finished run whose figures are stored; None if it is missing."""
        folder = cell.run_folder(seed, runs)
        stored = seed in self.figures_by_seed(cell)
        return folder if stored and run_of_cell(folder, cell.run_config(seed, runs)) else None


def place(cell: Cell, seed: int) -> int:
    """Return the position of a seed among the cell's seeds; further seeds come last."""
    return cell.seeds.index(seed) if seed in cell.seeds else len(cell.seeds) + seed


def is_merged_from(merged: Content, runs: Mapping[str, Content]) -> bool:
    """Return whether an ensemble's member scores equal those of the runs."""
    return all(
        name in runs
        and all(np.isclose(score, runs[name]["dev"][task][key]) for key, score in scores.items())
        for task, part in merged["members"].items()
        for name, scores in part["dev"].items()
    )
