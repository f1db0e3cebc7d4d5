"""Reproduction of a study: choose settings, train the missing runs, write the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count as numbers
from itertools import islice
from pathlib import Path
from typing import Any

from common.errors import SettingsError, UserError
from common.files import atomic_write_text, check_regular
from common.text import any_of
from studies import STUDIES
from studies.claims import claims_part
from studies.data_records import record_data, write_leaks
from studies.results import Cell, Results
from studies.runner import run_cells
from studies.study import Report, Study, StudyRequest, absent_tasks, find_study
from studies.tuning import (
    SEEDS,
    Search,
    Settings,
    point_beyond,
    points_left,
    points_tried,
    tune,
    tuned_settings,
)

SHOWN_ROWS = 40  # in an error message


def check_request(study: Study, request: StudyRequest) -> None:
    """Raise SettingsError for unknown rows and for options that only other studies accept."""
    names = study.rows()
    for row in request.rows or ():
        if row not in names and not (study.by_beginning and any(n.startswith(row) for n in names)):
            some = ", ".join(names[:SHOWN_ROWS]) + (", ..." if len(names) > SHOWN_ROWS else "")
            what = "the beginning of one of" if study.by_beginning else "one of"
            raise SettingsError(f"rows: expected {what} {some}; found {row}")
    if not study.limit_shares and isinstance(request.base.limit, float):
        unit = "class" if study.limit_per_class else "task"
        found = f"with {study.name}, found {request.base.limit}"
        raise SettingsError(f"limit: expected a number of examples per {unit} {found}")
    if request.rows and request.further:
        raise SettingsError("rows and further: expected at most one of them")
    given = {
        "tune": request.tune,
        "further": request.further,
        "seeds": request.seeds,
        "epochs": request.epochs,
        "lr": request.lr,
        "dev_limit": request.base.dev_limit,
        "vectors": request.vectors,
        **request.changes,
    }
    for key, value in given.items():
        if value and key not in study.options:
            accepting = any_of([name for name in STUDIES if key in find_study(name).options])
            raise SettingsError(f"{key}: expected table {accepting}, found {study.name}")
    study.check(request)


def reproduce(study: Study, request: StudyRequest) -> str:
    """Train the missing runs, then write and return the page of all finished cells.

    With `stored_only` nothing is trained or tuned. Raise UserError if runs failed, after everything
    else is written.
    """
    failed = []
    if request.tune and request.stored_only:
        check_tuned(study, request)
    elif request.tune:
        failed = tune_requested(study, request)
    request = with_tuned_settings(study, request)
    cells = study.cells(request)
    results = Results(request.results)
    title_and_notes(study, request.results)  # reject unreadable notes before hours of work
    for one in cells:  # reject another configuration before hours of work
        for needed in (one, *(cell for cell, _ in one.every_earlier_run(one.seeds[0]))):
            results.figures_by_seed(needed)
    chosen = []
    if not request.stored_only:
        chosen = requested_cells(study, cells, request)
        if study.audited:
            earlier = (one.every_earlier_run(one.seeds[0]) for one in chosen)
            every = [*chosen, *(cell for runs in earlier for cell, _ in runs)]
            every += [one for one in cells if results.figures_by_seed(one)]
            record_data(every, request.results)
            write_leaks(every, request.results)
        failed += run_cells(chosen, results, request.runs, record_drawn=not study.audited)
    report = Report(results, request, cells, chosen)
    study.draw(report)
    text = page_of(study, report)
    atomic_write_text(study.page_path(request.results), text)
    if study.train_and_draw is not None:
        study.train_and_draw(report)
        text = page_of(study, report)
        atomic_write_text(study.page_path(request.results), text)
    if failed:
        raise UserError(f"{len(failed)} runs failed, the first: {failed[0]}")
    return text


def planned_cells(study: Study, request: StudyRequest) -> list[Cell]:
    """Return the cells whose missing runs `reproduce` would train, those of --tune last."""
    request = with_tuned_settings(study, request)
    cells = requested_cells(study, study.cells(request), request)
    for search in requested_searches(study, request) if request.tune else ():
        cells += [search.trial(point, SEEDS) for point in next_points(search, study, request)]
    return cells


def with_tuned_settings(study: Study, request: StudyRequest) -> StudyRequest:
    """Return the request with the settings that were chosen on dev, from its results folder."""
    return replace(request, tuned=tuned_settings(study.searches_of(request), request.results))


def requested_searches(study: Study, request: StudyRequest) -> list[Search]:
    """Return the searches of requested cells with available data."""
    cells = requested_cells(study, study.cells(request), replace(request, seeds=None))
    names = {one.name for one in cells}
    return [search for search in study.searches_of(request) if search.cell.name in names]


def tune_requested(study: Study, request: StudyRequest) -> list[str]:
    """Choose the settings of the requested cells on dev; return the errors of failed runs."""
    found = requested_searches(study, request)
    if not found:
        raise UserError("--tune: expected rows with settings to choose, found none")
    count = request.tune or 0
    unfinished = [one for one in found if points_left(one, count, request.results)]
    if there := stored_cells(unfinished, study, request):
        raise UserError(
            "--tune: expected a --results without cells whose settings could change; found "
            f"{there[0]}; leave out --tune to keep its settings, or name other --rows"
        )
    found = [one for one in found if next_points(one, study, request)]
    return tune(found, count, request.results, request.runs)


def next_points(search: Search, study: Study, request: StudyRequest) -> Sequence[Settings]:
    """Return the points of a search that are to be tried next.

    The settings of stored cells stay: no rate beyond the grid is tried for them.
    """
    if left := points_left(search, request.tune or 0, request.results):
        return left
    beyond = point_beyond(search, request.results)
    return [] if beyond is None or stored_cells([search], study, request) else [beyond]


def stored_cells(searches: Sequence[Search], study: Study, request: StudyRequest) -> list[Path]:
    """Return the files of stored cells that change with the settings chosen by these searches."""
    results = Results(request.results)
    files = map(results.file, cells_with_settings_of(searches, study, request))
    return [file for file in files if file.exists()]


def check_tuned(study: Study, request: StudyRequest) -> None:
    """Raise UserError if other points of a requested grid are stored than the request tunes."""
    searches = study.searches_of(request)
    names = {one.name for one in study.selected([one.cell for one in searches], request)}
    for search in searches:
        found, count = points_tried(search, request.results), len(search.points(request.tune or 0))
        if found not in (0, count) and search.cell.name in names:
            what = f"{count} stored points of {search.cell.name} with --stored-only"
            raise UserError(f"--tune: expected {what}, found {found}")


def cells_with_settings_of(
    searches: Sequence[Search], study: Study, request: StudyRequest
) -> list[Cell]:
    """Return the cells that change with the settings chosen by these searches."""
    request = with_tuned_settings(study, request)
    first, last = (
        {one.name: one.config for one in study.cells(replace(request, tuned=tuned))}
        for tuned in (
            {**request.tuned, **{s.cell.name: end_of(s, place) for s in searches}}
            for place in (0, -1)
        )
    )
    changed = {name for name, config in first.items() if last.get(name) != config}
    return [one for one in study.cells(request) if one.name in changed]


def end_of(search: Search, place: int) -> dict[str, Any]:
    """Return the point of a grid with the first (0) or the last (-1) value of each setting."""
    return {key: values[place] for key, values in search.grid.items()}


def page_of(study: Study, report: Report) -> str:
    """Return the page: title, command, claims, notes, the parts of its study, and figures."""
    title, notes = title_and_notes(study, report.results.folder)
    parts = [f"# {title}", f"`{report.request.command}`"]
    if tested := claims_part(study.claims(report), study.claims_note):
        parts += [*tested, "## Notes"]
    parts += [notes, *study.page(report), figures_part(study, report.results.folder)]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def figures_part(study: Study, results: Path) -> str:
    """Return the part of a page with the figures in the folder of results; "" without any."""
    parts = []
    for file in sorted(results.glob("*.png")):
        kind, _, rest = file.stem.partition("-")
        caption = study.captions.get(file.stem) or study.captions.get(kind, kind)
        parts += [f"![{file.stem}]({results.name}/{file.name})", caption.format(rest)]
    note = "Figures are of runs in the tables, also of those that test no claim fairly."
    return "\n\n".join(["## Figures", note, *parts]) if parts else ""


def title_and_notes(study: Study, results: Path) -> tuple[str, str]:
    """Return the title of a page and the notes in the folder of results, if there are any.

    Notes are what a page says and its study does not write, such as the machine.
    A heading in the first line of the file replaces the title of the study. Raise UserError for
    anything but a file of UTF-8 text.
    """
    file = results / "notes.md"
    if not file.exists():
        return study.title, ""
    check_regular(file)
    try:
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: expected UTF-8 text: {error}") from error
    heading, _, rest = text.partition("\n")
    title = heading.removeprefix("# ").strip()
    return (title, rest) if heading.startswith("# ") and title else (study.title, text)


def requested_cells(study: Study, cells: Sequence[Cell], request: StudyRequest) -> list[Cell]:
    """Return the requested cells with available data, with the requested number of seeds."""
    found = study.selected(cells, request)
    wanted = request.seeds or (1 if study.few_seeds else None)
    if wanted is not None:
        found = [replace(one, seeds=requested_seeds(one, wanted, study)) for one in found]
    absent = absent_tasks(found)
    for name, file in absent.items():
        print(f"{name} is skipped: {file} does not exist", flush=True)
    found = [one for one in found if not absent.keys() & set(one.config.tasks)]
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
