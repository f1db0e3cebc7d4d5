"""What a study is: cells, a page of tables made of them, and how it is asked for.

A study is a line of `studies.STUDIES`, and a module with a `STUDY`. One runner (`runner.py`) brings
its cells to their end, one store (`results.py`) keeps their figures, `reproduce` writes its page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers
from itertools import islice
from pathlib import Path

from common.atomic_files import write_whole
from common.errors import SettingsError, UserError
from multitask.assembly import plain_tasks
from multitask.config import RunConfig
from studies.faults import left_out
from studies.results import Cell, Results
from studies.runner import keep_data, run_cells, write_leaks
from tasks import data_folder

SHOWN_ROWS = 40  # in a message


@dataclass(frozen=True)
class StudyRequest:
    """Which cells and seeds of a study, with what; None stands for what the study has.

    `results` keeps one file per cell, `runs` the folders of runs. With `kept_only` nothing is
    trained. `command` is how a reader repeats the request.
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
    kept_only: bool = False
    command: str = ""

    @property
    def page(self) -> Path:
        """Where the tables go, beside the folder of cells."""
        return self.results.with_name(f"{self.results.name}.md")


@dataclass(frozen=True)
class Report:
    """What a page is made of: the results, the request, and the cells that were run for it."""

    results: Results
    request: StudyRequest
    cells: Sequence[Cell]
    chosen: Sequence[Cell]

    def ran(self, cells: Sequence[Cell]) -> bool:
        """Whether all of these cells were asked for, such as those that a figure shows."""
        return {one.name for one in self.chosen} >= {one.name for one in cells}


@dataclass(frozen=True)
class Study:
    """A study.

    `cells` gives every cell, asked for or not, in the order of the tables; `page` the parts of the
    page below its notes. `wanted` says whether a cell is asked for; by default its name begins as a
    row does. `draw` draws figures of kept cells; `train_and_draw` those of runs of their own, after
    the page, and says whether the page shows something of them. `options` are the flags that only
    some studies take. `audited`: the files that the cells are made from are
    kept by hash, with a leak audit; else the examples that each run drew.
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
    limit: int | None = None  # training examples of a task where nothing else is asked for
    options: Collection[str] = ()
    by_beginning: bool = True  # rows are beginnings of cells' names, not whole names
    audited: bool = False
    few_seeds: bool = False  # by default only the first seed
    limit_per_class: bool = False
    command: bool = True  # on the page

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
    """SettingsError for rows that a study does not have, and for what only other studies take."""
    names = study.rows()
    for row in request.rows or ():
        if row not in names and not (study.by_beginning and any(n.startswith(row) for n in names)):
            some = ", ".join(names[:SHOWN_ROWS]) + (", ..." if len(names) > SHOWN_ROWS else "")
            what = "how some of these begin:" if study.by_beginning else "some of"
            raise SettingsError(f"rows: expected {what} {some}; found {row}")
    if study.limit_per_class and isinstance(request.base.limit, float):
        found = f"with {study.name}, found {request.base.limit}"
        raise SettingsError(f"limit: expected examples of a class {found}")
    if request.rows and request.further:
        raise SettingsError("rows and further: expected at most one of them")
    given = {
        "further": request.further,
        "seeds": request.seeds,
        "dev_limit": request.base.dev_limit,
        "vectors": request.vectors,
    }
    for key, value in given.items():
        if value and key not in study.options:
            raise SettingsError(f"{key}: expected another table than {study.name}")
    study.check(request)


def reproduce(study: Study, request: StudyRequest) -> str:
    """Run what is not kept yet; write and return the page of all finished cells.

    UserError, once everything else is written, where runs failed.
    """
    cells = study.cells(request)
    results = Results(request.results)
    for one in cells:  # a cell of another configuration is refused before hours of work
        results.kept(one)
    chosen, failed = [], list[str]()
    if not request.kept_only:
        chosen = chosen_cells(study, cells, request)
        if study.audited:
            every = [*chosen, *(one.before for one in chosen if one.before is not None)]
            keep_data(every, request.results)
            write_leaks(every, request.results)
        failed = run_cells(chosen, results, request.runs, keep_drawn=not study.audited)
    report = Report(results, request, cells, chosen)
    study.draw(report)
    text = page_of(study, report)
    write_whole(request.page, text)
    if study.train_and_draw(report):
        text = page_of(study, report)
        write_whole(request.page, text)
    tell_failed(failed)
    return text


def tell_failed(failed: Sequence[str]) -> None:
    """UserError where runs failed."""
    if failed:
        raise UserError(f"{len(failed)} runs failed, the first: {failed[0]}")


def page_of(study: Study, report: Report) -> str:
    command = [f"`{report.request.command}`"] if study.command else []
    parts = [f"# {study.title}", *command, *study.page(report)]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def chosen_cells(study: Study, cells: Sequence[Cell], request: StudyRequest) -> list[Cell]:
    """Return the cells asked for whose data is there, with as many seeds as asked for."""
    found = [one for one in cells if study.is_wanted(one, request)]
    wanted = request.seeds or (1 if study.few_seeds else None)
    if wanted is not None:
        found = [replace(one, seeds=chosen_seeds(one, wanted, study)) for one in found]
    absent = absent_tasks(found)
    for name, file in absent.items():
        print(f"{name} is left out, for there is no {file}", flush=True)
    found = without(absent, found)
    if not found:
        data = cells[0].config.data
        raise UserError(f"{data}: expected data of a task asked for, found none")
    return found


def chosen_seeds(one: Cell, count: int, study: Study) -> tuple[int, ...]:
    """Return so many of a cell's seeds, further ones where it has fewer.

    A sweep has no more than its own: its points are shown over the same seeds.
    """
    if study.audited and count > len(one.seeds) > 1:
        raise UserError(f"--seeds: expected {len(one.seeds)} at most, found {count}")
    if study.audited or one.name.startswith("sweep"):
        return one.seeds[:count]
    others = (seed for seed in numbers(1) if seed not in one.seeds)
    return (*one.seeds[:count], *islice(others, max(0, count - len(one.seeds))))


def without(absent: Collection[str], cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of none of these tasks."""
    return [one for one in cells if not set(absent) & set(one.config.tasks)]


def absent_tasks(cells: Sequence[Cell]) -> dict[str, Path]:
    """Return tasks of which a file that their protocol reads is missing, with the file."""
    absent: dict[str, Path] = {}
    for config in {one.config.tasks: one.config for one in cells}.values():
        folder = data_folder(config.data)
        for name, task in plain_tasks(config).items():
            for split in task.source.splits:
                file = Path(task.source.where(folder, split))
                if not file.exists():
                    absent.setdefault(name, file)
    return absent


def how_far(report: Report) -> str:
    """Return how many cells have all their seeds, which data is missing, what is left out."""
    absent = absent_tasks(report.cells)
    cells, results = without(absent, report.cells), report.results
    done = sum(len(results.kept(one)) >= len(one.seeds) for one in cells)
    parts = [f"{done} of {len(cells)} cells are finished."]
    parts += [f"Without data here: {', '.join(absent)}."] if absent else []
    parts += [left_out(results.faults(cells))]
    return " ".join(filter(None, parts))


def notes_of(study: Study, request: StudyRequest) -> str:
    """Return what a reader has to know before setting our figures beside a paper's."""
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
