"""A study: its cells, a page of tables built from them, and requests for it.

A study is a module with a `STUDY` and a line of `studies.STUDIES`. `runner.py` completes its cells,
`results.py` stores their figures, and `reproduce` writes its page.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from os.path import abspath
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from common.errors import UserError
from common.files import write_json
from common.settings import accepts
from ensemble.runs import ensemble_runs
from multitask.config_tasks import plain_tasks
from multitask.settings.config import RunConfig
from reports.cells import read_cell
from reports.tables import markdown_table
from studies import STUDIES
from studies.claims import Claim
from studies.results import Cell, Content, Results, is_merged_from
from studies.tuning import Search, Tuned, tuning_table
from tasks import data_folder


@cache
def printed(paper: str) -> dict[str, Any]:
    """Return all figures of a paper; see its file for tables and units."""
    return tomllib.loads((Path(__file__).parent / paper / "paper.toml").read_text("utf-8"))


BEYOND_GRID = (
    "*3 + 1* points are three of the grid and one beyond it: while the best point has the lowest "
    "or the highest rate, the next rate beyond is tried. "
)


@dataclass(frozen=True)
class StudyRequest:
    """A request for cells and seeds of a study; None stands for the study's own value.

    `changes` are settings that replace the study's own: pooling and batch size. `tuned` are those
    chosen on dev, by cell; `tune` is the number of points to try for each requested cell.
    `results` has one file per cell, `runs` the run folders. With `stored_only` nothing is trained
    or tuned.
    `command` is the command line that repeats the request. `made` holds the study's experiments,
    which are made once.
    """

    base: RunConfig
    results: Path
    runs: Path
    rows: tuple[str, ...] | None = None
    further: bool = False
    seeds: int | None = None
    epochs: int | None = None
    lr: float | None = None
    vectors: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    tuned: Tuned = field(default_factory=dict)
    tune: int | None = None
    stored_only: bool = False
    command: str = ""
    made: list[Any] = field(default_factory=list, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class Report:
    """Input of a page: the results, the request, all cells, and the chosen cells that were run."""

    results: Results
    request: StudyRequest
    cells: Sequence[Cell]
    chosen: Sequence[Cell]

    def cell(self, name: str) -> Cell:
        return next(one for one in self.cells if one.name == name)

    def ensemble(
        self, members: Mapping[str, Sequence[Cell]], method: str, seeds: int | None = None
    ) -> Content | None:
        """Merge the members' first runs by task, if all are here, and store the metrics.

        Otherwise, and with `stored_only`, return the stored metrics if they are of the stored runs.
        """
        runs, stored = self.request.runs, self.results.folder / "ensemble.json"
        every = {
            task: [
                self.results.finished_folder(one, seed, runs)
                for one in several
                for seed in one.seeds[:seeds]
            ]
            for task, several in members.items()
        }
        found = {task: [one for one in several if one] for task, several in every.items()}
        if found == every and not self.request.stored_only:
            merged: Content = ensemble_runs(found, method, 0, runs / "ensemble", overwrite=True)
            write_json(stored, merged)
            return merged
        merged = read_cell(stored) if stored.exists() else {}
        if merged and not accepts(dict[str, dict[str, Any]], merged.get("members")):
            raise UserError(f"{stored}: expected an ensemble of this study, found other content")
        known = self.results.figures_by_run(self.cells)
        return merged if merged and is_merged_from(merged, known) else None

    def ran(self, cells: Sequence[Cell]) -> bool:
        """Return whether all of these cells were requested, such as those of a figure."""
        return {one.name for one in self.chosen} >= {one.name for one in cells}


@dataclass(frozen=True)
class Study:
    """A study.

    `cells` returns all cells, requested or not, in the order of the tables. A page has a title, the
    command, what `claims` returns, with `claims_note`, the notes of the results folder, the parts
    that `page` returns, and the figures of that folder, with `captions` by file, or by the first
    part of its name before "-", where the rest is "{}". `wanted` returns whether a cell is
    requested, by default if its name begins with a row; where a row is a cell's whole name,
    `selected` leaves out longer names. `draw` draws figures of stored cells. `train_and_draw` draws
    figures of additional runs after the page, which is then written again. `searches` returns the
    cells whose settings can be chosen on dev, with their grids. `options` are flags that only some
    studies accept. `data` describes the training data of a request without a limit. An `audited`
    study records hashes of its data files and a leak audit, any other study the examples that each
    run drew.
    """

    name: str
    title: str
    notes: str
    cells: Callable[[StudyRequest], list[Cell]]
    page: Callable[[Report], list[str]]
    claims: Callable[[Report], Sequence[Claim]] = lambda report: ()
    claims_note: str = ""
    wanted: Callable[[Cell, StudyRequest], bool] | None = None
    check: Callable[[StudyRequest], None] = lambda request: None
    draw: Callable[[Report], None] = lambda report: None
    train_and_draw: Callable[[Report], None] | None = None
    captions: Mapping[str, str] = field(default_factory=dict)
    searches: Callable[[StudyRequest], list[Search]] = lambda request: []
    precision: str = "fp32"
    options: Collection[str] = ()
    limit_shares: bool = True  # whether `limit` may be a share of the examples
    by_beginning: bool = True  # rows may be prefixes of cell names
    audited: bool = False
    few_seeds: bool = False  # by default only the first seed
    limit_per_class: bool = False
    data: str = "all training data"  # without a limit
    folder: str | None = None  # in results/ and runs/; None stands for the name

    def rows(self) -> list[str]:
        """Return the names of all cells."""
        nothing = StudyRequest(RunConfig(mode="single", tasks=()), Path(), Path())
        return [one.name for one in self.cells(nothing)]

    def page_path(self, results: Path) -> Path:
        """Return the file of the page, next to the folder of cells."""
        results = Path(abspath(results)) if results.name in ("", "..") else results
        return results.with_name(f"{results.name}.md")

    def searches_of(self, request: StudyRequest) -> Sequence[Search]:
        """Return the searches of a request, from the settings before any was chosen."""
        return self.searches(replace(request, tuned={}))

    def is_wanted(self, cell: Cell, request: StudyRequest) -> bool:
        if self.wanted is not None:
            return self.wanted(cell, request)
        if request.rows is None:
            return True
        return (
            cell.name.startswith(request.rows) if self.by_beginning else cell.name in request.rows
        )

    def selected(self, cells: Sequence[Cell], request: StudyRequest) -> list[Cell]:
        """Return the requested ones of these cells.

        Those that are requested only because their names begin with the whole name of another one
        are left out.
        """
        found, rows = [one for one in cells if self.is_wanted(one, request)], request.rows or ()
        whole = tuple(one.name for one in found if one.name in rows)
        prefixes = tuple(row for row in rows if row not in whole)
        return [
            one
            for one in found
            # The last condition keeps the cells that a requested one needs beside it.
            if one.name in whole or one.name.startswith(prefixes) or not one.name.startswith(whole)
        ]


def absent_tasks(cells: Sequence[Cell]) -> dict[str, Path]:
    """Return the tasks for which a file of their protocol is missing, with the file."""
    absent: dict[str, Path] = {}
    for config in {tuple(one.config.tasks): one.config for one in cells}.values():
        folder = data_folder(config.data)
        for name, task in plain_tasks(config).items():
            for split in task.source.splits:
                file = Path(task.source.where(folder, split))
                if not file.exists():
                    absent.setdefault(name, file)
    return absent


def progress_notice(report: Report) -> str:
    """Describe how many cells have all seeds, and the tasks without any figure."""
    cells, results = report.cells, report.results
    done = sum(len(results.figures_by_seed(one)) >= len(one.seeds) for one in cells)
    begun = {name for one in cells if results.figures_by_seed(one) for name in one.config.tasks}
    every = dict.fromkeys(name for one in cells for name in one.config.tasks)
    none = [name for name in every if name not in begun]
    nothing = f" Nothing is measured yet on {', '.join(none)}." if begun and none else ""
    return f"{done} of {len(cells)} cells have all their seeds.{nothing}"


def tuning_part(study: Study, report: Report) -> list[str]:
    """Return the part of a page with the settings that were chosen on dev; empty without any."""
    searches = study.searches_of(report.request)
    header, rows = tuning_table(searches, report.results.folder)
    if not rows:
        return []
    beyond = BEYOND_GRID if any("+" in points for *_, points, _ in rows) else ""
    return [
        "## Settings chosen on dev",
        "Points are drawn at random from each method's grid of learning rate and own settings, or "
        "are the whole grid if it is smaller; a point's figure is the mean over its "
        f"seeds. {beyond}The seeds of the tables below include these seeds; test chose nothing.",
        markdown_table(header, rows),
    ]


def notes_of(study: Study, request: StudyRequest) -> str:
    """Return notes that a reader needs before comparing our figures with a paper's."""
    base, epochs = request.base, request.epochs
    data = study.data
    if base.limit is not None:
        whole = isinstance(base.limit, int)
        many = f"{base.limit:,}" if whole else f"a share of {base.limit:g} of the"
        unit = "a class" if study.limit_per_class else "a task"
        data = f"{many} training examples of {unit}"
    counted = f"{epochs} epochs" if epochs else "the numbers of epochs named by the study"
    return f"Ours: encoder {base.encoder}, {data}, {counted}, {base.precision}; {study.notes}"


def find_study(name: str) -> Study:
    """Import the module of a study and return the study."""
    return resolve_name(STUDIES[name])
