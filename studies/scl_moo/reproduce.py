"""Runs the cells of SCL-MOO and writes its tables and figures beside ours."""

from __future__ import annotations

from common.atomic_files import write_whole
from multitask.config import RunConfig
from studies.cell_selection import absent_tasks, all_chosen, run_chosen
from studies.scl_moo.experiments import SPACES, SWEEPS, Experiments
from studies.scl_moo.figures import draw_shots, draw_sweeps
from studies.scl_moo.maps import draw_trained, mapped
from studies.scl_moo.report import report
from studies.scl_moo.results import Results
from studies.seeds import SeedCell, tell_failed
from studies.study_request import StudyRequest

RATE = 1e-5  # section 4.1
WHOLE_SWEEPS = ("sweep", *(f"sweep-{name}" for name in SWEEPS.values()))


def names() -> list[str]:
    """Of all cells; the beginning of one asks for all that begin so."""
    return [one.name for one in Experiments(RunConfig(mode="single", tasks=())).every()]


def reproduce(asked: StudyRequest, command: str, notes: str) -> str:
    """Run what is not there yet; writes and returns the report of all finished cells."""
    rate = asked.lr or RATE
    cells = Experiments(asked.base.changed(lr=rate, head_lr=rate), asked.epochs)
    chosen, failed = run_chosen(cells.every(), lambda one: wanted(one, asked.rows), asked)
    results = Results(cells, asked.results)
    draw_shots(results)
    draw_sweeps(results)
    notes = f"{notes} Learning rate {rate:g}."
    text = report(results, command, notes, absent_tasks(cells.every()))
    write_whole(asked.report, text)
    if all_chosen(chosen, mapped(cells)):
        draw_trained(cells, asked.results, asked.runs)
    tell_failed(failed)
    return text


def wanted(one: SeedCell, rows: tuple[str, ...] | None) -> bool:
    """Whether its name begins as one asked for, or it is a few-shot cell that belongs to one.

    One point of a whole sweep is such a cell, and what EPO at the parameters is compared with.
    """
    if rows is None or any(one.name.startswith(row) for row in rows):
        return True
    swept = [f"few-shot-sst2-50-{method}" for method in ("scl", "ls", "epo")]
    compared = [
        f"few-shot-{task}-50-epo"
        for task in SPACES
        if any(f"parameters-{task}-epo".startswith(row) for row in rows)
    ]
    return one.name in compared or (one.name in swept and any(row in WHOLE_SWEEPS for row in rows))
