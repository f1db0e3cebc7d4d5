"""Runs the cells of LaCon and writes its tables and figures beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from common.atomic_files import write_whole
from multitask.config import RunConfig
from reports.cells import write_cell
from studies.cell_selection import absent_tasks, all_chosen, run_chosen
from studies.lacon.embeddings import draw_spectra, effective_rank, space_of, spectrum
from studies.lacon.experiments import MAPPED, METHODS, SEEDS, Experiments
from studies.lacon.figures import draw_figures
from studies.lacon.report import report
from studies.lacon.results import Results, ranks_file
from studies.maps import draw_spaces, drawn_run
from studies.seeds import tell_failed
from studies.study_request import StudyRequest

RATE = 2e-5  # the middle one of section 3.1
SHOWN = ("ce", "scl", "lacon")  # Figure 4


def names() -> list[str]:
    """Of all cells; the beginning of one asks for all that begin so."""
    return [one.name for one in Experiments(RunConfig(mode="single", tasks=())).every()]


def reproduce(asked: StudyRequest, command: str, notes: str) -> str:
    """Run what is not there yet; writes and returns the report of all finished cells."""
    rate = asked.lr or RATE
    cells = Experiments(asked.base, asked.epochs, rate)
    rows = asked.rows or ("",)
    chosen, failed = run_chosen(cells.every(), lambda one: one.name.startswith(rows), asked)
    results = Results(cells, asked.results)
    draw_figures(results)
    notes = f"{notes} Learning rate {rate:g}."
    absent = absent_tasks(cells.every())
    write_whole(asked.report, report(results, command, notes, absent))
    for task in MAPPED:
        if all_chosen(chosen, [cells.main(task, method) for method in SHOWN]):
            draw_trained(cells, task, asked.results, asked.runs)
    text = report(results, command, notes, absent)  # with the ranks of what was drawn
    write_whole(asked.report, text)
    tell_failed(failed)
    return text


def draw_trained(cells: Experiments, task: str, results: Path, runs: Path) -> None:
    """Figure 4 and the appendix's singular values, of runs that stay."""
    spaces, encoders = {}, {}
    for method in SHOWN:
        config = replace(cells.main(task, method).config, seed=SEEDS[0])
        folder = drawn_run(config, runs, f"{task}-{method}")
        spaces[METHODS[method]] = space_of(folder)
        encoders[METHODS[method]] = space_of(folder, matched=False)
    encoders["LaCon, projected"] = spaces[METHODS["lacon"]]
    draw_spaces(spaces, results / f"maps-{task}.png")
    draw_spectra(encoders, results / f"spectrum-{task}.png")
    ranks = {title: effective_rank(spectrum(space)) for title, space in encoders.items()}
    write_cell(ranks_file(results, task), ranks)
