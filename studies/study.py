"""A study: its cells, a page of tables built from them, and requests for it.

A study is a module with a `STUDY` and a line of `studies.STUDIES`. `runner.py` completes its cells,
`results.py` stores their figures, and `reproduce` writes its page.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count as numbers
from itertools import islice
from pathlib import Path
from typing import Any

from common.atomic_files import atomic_write_text
from common.errors import SettingsError, UserError
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from reports.cells import read_cell
from studies.faults import left_out_notice
from studies.results import Cell, Content, Results, is_merged_from
from studies.runner import record_data, run_cells, write_leaks
from tasks import data_folder


@cache
def printed(paper: str) -> dict[str, Any]:
    """Return all figures of a paper; see its file for tables and units."""
    return tomllib.loads((Path(__file__).parent / paper / "paper.toml").read_text("utf-8"))


SHOWN_ROWS = 40  # in an error message


@dataclass(frozen=True)
class StudyRequest:
    """A request for cells and seeds of a study; None stands for the study's own value.

    `changes` are settings that replace the study's own: pooling and batch size.
    `results` has one file per cell, `runs` the run folders. With `stored_only` nothing is trained.
    `command` is the command line that repeats the request.
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
    stored_only: bool = False
    command: str = ""

    @property
    def page(self) -> Path:
        """Return the file of the tables, next to the folder of cells."""
        return self.results.with_name(f"{self.results.name}.md")


@dataclass(frozen=True)
class Report:
    """Input of a page: the results, the request, all cells, and the chosen cells that were run."""

    results: Results
    request: StudyRequest
    cells: Sequence[Cell]
    chosen: Sequence[Cell]

    def omitted(self) -> str:
        """Return a sentence about the stored runs that fixed faults affect."""
        return left_out_notice(self.results.faults(self.cells))

    def cell(self, name: str) -> Cell:
        return next(one for one in self.cells if one.name == name)

    def member_folders(
        self, members: Mapping[str, Sequence[Cell]], seeds: int | None = None
    ) -> dict[str, list[Path]] | None:
        """Return the folders of the members' first runs by task, in order to merge them.

        None if a run is unfinished or not here, or with `stored_only`.
        """
        runs = self.request.runs
        every = {
            task: [
                self.results.finished_folder(one, seed, runs)
                for one in several
                for seed in one.seeds[:seeds]
            ]
            for task, several in members.items()
        }
        found = {task: [one for one in several if one] for task, several in every.items()}
        return found if found == every and not self.request.stored_only else None

    def stored_merge(self, file: str) -> Content | None:
        """Return the stored metrics of a merge if it was made from the stored runs."""
        path = self.results.folder / file
        merged = read_cell(path) if path.exists() else None
        runs = self.results.figures_by_run(self.cells)
        return merged if merged is not None and is_merged_from(merged, runs) else None

    def ran(self, cells: Sequence[Cell]) -> bool:
        """Return whether all of these cells were requested, such as those of a figure."""
        return {one.name for one in self.chosen} >= {one.name for one in cells}


@dataclass(frozen=True)
class Study:
    """A study.

    `cells` returns all cells, requested or not, in the order of the tables. `page` returns the
    parts of the page below title and command. `wanted` returns whether a cell is requested, by
    default if its name begins with a row. `draw` draws figures of stored cells. `train_and_draw`
    draws figures of additional runs after the page, and returns whether the page shows them.
    `options` are flags that only some studies accept. An `audited` study records hashes of its
    data files and a leak audit, any other study the examples that each run drew.
    """

    name: str
    title: str
    notes: str
    cells: Callable[[StudyRequest], list[Cell]]
    page: Callable[[Report], list[str]]
    wanted: Callable[[Cell, StudyRequest], bool] | None = None
    check: Callable[[StudyRequest], None] = lambda request: None
    draw: Callable[[Report], None] = lambda report: None
    train_and_draw: Callable[[Report], bool] = lambda report: False
    precision: str = "fp32"
    limit: int | None = None  # default number of training examples per task
    options: Collection[str] = ()
    by_beginning: bool = True  # rows are prefixes of cell names, not whole names
    audited: bool = False
    few_seeds: bool = False  # by default only the first seed
    limit_per_class: bool = False
    folder: str | None = None  # in results/ and runs/; None stands for the name

    def rows(self) -> list[str]:
        """Return the names of all cells."""
        nothing = StudyRequest(RunConfig(mode="single", tasks=()), Path(), Path())
        return [one.name for one in self.cells(nothing)]

    def is_wanted(self, cell: Cell, request: StudyRequest) -> bool:
        if self.wanted is not None:
            return self.wanted(cell, request)
        if request.rows is None:
            return True
        return (
            cell.name.startswith(request.rows) if self.by_beginning else cell.name in request.rows
        )


def check_request(study: Study, request: StudyRequest) -> None:
    """Raise SettingsError for unknown rows and for options that only other studies accept."""
    names = study.rows()
    for row in request.rows or ():
        if row not in names and not (study.by_beginning and any(n.startswith(row) for n in names)):
            some = ", ".join(names[:SHOWN_ROWS]) + (", ..." if len(names) > SHOWN_ROWS else "")
            what = "the beginning of one of" if study.by_beginning else "one of"
            raise SettingsError(f"rows: expected {what} {some}; found {row}")
    if study.limit_per_class and isinstance(request.base.limit, float):
        found = f"with {study.name}, found {request.base.limit}"
        raise SettingsError(f"limit: expected a number of examples per class {found}")
    if request.rows and request.further:
        raise SettingsError("rows and further: expected at most one of them")
    given = {
        "further": request.further,
        "seeds": request.seeds,
        "dev_limit": request.base.dev_limit,
        "vectors": request.vectors,
        **request.changes,
    }
    for key, value in given.items():
        if value and key not in study.options:
            raise SettingsError(f"{key}: expected another table than {study.name}")
    study.check(request)


def reproduce(study: Study, request: StudyRequest) -> str:
    """Train the missing runs, then write and return the page of all finished cells.

    Raises UserError if runs failed, after everything else is written.
    """
    cells = study.cells(request)
    results = Results(request.results)
    for one in cells:  # reject another configuration before hours of work
        results.figures_by_seed(one)
    chosen, failed = [], list[str]()
    if not request.stored_only:
        chosen = requested_cells(study, cells, request)
        if study.audited:
            every = [*chosen, *(one.base_cell for one in chosen if one.base_cell is not None)]
            record_data(every, request.results)
            write_leaks(every, request.results)
        failed = run_cells(chosen, results, request.runs, record_drawn=not study.audited)
    report = Report(results, request, cells, chosen)
    study.draw(report)
    text = page_of(study, report)
    atomic_write_text(request.page, text)
    if study.train_and_draw(report):
        text = page_of(study, report)
        atomic_write_text(request.page, text)
    raise_if_failed(failed)
    return text


def raise_if_failed(failed: Sequence[str]) -> None:
    """Raise UserError if runs failed."""
    if failed:
        raise UserError(f"{len(failed)} runs failed, the first: {failed[0]}")


def page_of(study: Study, report: Report) -> str:
    parts = [f"# {study.title}", f"`{report.request.command}`", *study.page(report)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def requested_cells(study: Study, cells: Sequence[Cell], request: StudyRequest) -> list[Cell]:
    """Return the requested cells with available data, with the requested number of seeds."""
    found = [one for one in cells if study.is_wanted(one, request)]
    wanted = request.seeds or (1 if study.few_seeds else None)
    if wanted is not None:
        found = [replace(one, seeds=requested_seeds(one, wanted, study)) for one in found]
    absent = absent_tasks(found)
    for name, file in absent.items():
        print(f"{name} is skipped: {file} does not exist", flush=True)
    found = without(absent, found)
    if not found:
        data = cells[0].config.data
        raise UserError(f"{data}: expected data of a requested task, found none")
    return found


def requested_seeds(one: Cell, count: int, study: Study) -> tuple[int, ...]:
    """Return `count` seeds of a cell, with further seeds if it has fewer.

    A sweep has no further seeds, because its points are compared over the same seeds.
    """
    if study.audited and count > len(one.seeds) > 1:
        raise UserError(f"--seeds: expected {len(one.seeds)} at most, found {count}")
    if study.audited or one.name.startswith("sweep"):
        return one.seeds[:count]
    others = (seed for seed in numbers(1) if seed not in one.seeds)
    return (*one.seeds[:count], *islice(others, max(0, count - len(one.seeds))))


def without(absent: Collection[str], cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells that use none of these tasks."""
    return [one for one in cells if not set(absent) & set(one.config.tasks)]


def absent_tasks(cells: Sequence[Cell]) -> dict[str, Path]:
    """Return the tasks for which a file of their protocol is missing, with the file."""
    absent: dict[str, Path] = {}
    for config in {one.config.tasks: one.config for one in cells}.values():
        folder = data_folder(config.data)
        for name, task in plain_tasks(config).items():
            for split in task.source.splits:
                file = Path(task.source.where(folder, split))
                if not file.exists():
                    absent.setdefault(name, file)
    return absent


def progress_notice(report: Report) -> str:
    """Describe how many cells have all seeds, which data is missing, and the omitted runs."""
    absent = absent_tasks(report.cells)
    cells, results = without(absent, report.cells), report.results
    done = sum(len(results.figures_by_seed(one)) >= len(one.seeds) for one in cells)
    parts = [f"{done} of {len(cells)} cells are finished."]
    parts += [f"Without data here: {', '.join(absent)}."] if absent else []
    parts += [left_out_notice(results.faults(cells))]
    return " ".join(filter(None, parts))


def notes_of(study: Study, request: StudyRequest) -> str:
    """Return notes that a reader needs before comparing our figures with a paper's."""
    base, epochs = request.base, request.epochs
    data = "all training data"
    if base.limit is not None:
        whole = isinstance(base.limit, int)
        many = f"{base.limit:,}" if whole else f"a share of {base.limit:g} of the"
        unit = "a class" if study.limit_per_class else "a task"
        data = f"{many} training examples of {unit}"
    elif study.limit_per_class:
        data = (
            "at most 5,000 training examples a class of two, 1,000 a class of more, all of MRPC, "
            "RTE and CoLA"
        )
    counted = f"{epochs} epochs" if epochs else "the numbers of epochs named by the study"
    return f"Ours: encoder {base.encoder}, {data}, {counted}, {base.precision}; {study.notes}"
