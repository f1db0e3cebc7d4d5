"""Runs the cells of LaCon and writes its tables and figures beside ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from minbert.files import alone, write_whole
from multitask.config import RunConfig
from multitask.control import RunControl
from multitask.run import complete
from reports.tables import markdown_table
from studies.asked import Asked
from studies.chosen import absent_tasks, chosen_cells
from studies.lacon import METHODS, SEEDS, Experiments
from studies.lacon_figures import draw_spectra, effective_rank, space_of, spectrum
from studies.lacon_lines import draw_lines
from studies.lacon_results import Results
from studies.lacon_table import report
from studies.maps import draw_spaces
from studies.seeds import run_seed_cells, tell_failed

RATE = 2e-5  # the middle one of section 3.1
SHOWN = ("ce", "scl", "lacon")
MAPPED = ("mrpc", "cola")  # Figure 4


def names() -> list[str]:
    """Of all cells; the beginning of one asks for all that begin so."""
    return [one.name for one in Experiments(RunConfig(mode="single", tasks=())).every()]


def reproduce(asked: Asked, command: str, notes: str) -> str:
    """Run what is not there yet; writes and returns the report of all finished cells."""
    rate = asked.lr or RATE
    cells = Experiments(asked.base, asked.epochs, rate)
    rows = asked.rows or ("",)
    chosen = chosen_cells(cells.every(), lambda one: one.name.startswith(rows), asked)
    failed = run_seed_cells(chosen, asked.results, asked.runs)
    results = Results(cells, asked.results)
    draw_lines(results)
    text = report(results, command, f"{notes} Learning rate {rate:g}.")
    write_whole(asked.report, text)
    if asked.rows is None:
        text += draw_trained(cells, asked.results, asked.runs)
        write_whole(asked.report, text)
    tell_failed(failed)
    return text


def draw_trained(cells: Experiments, results: Path, runs: Path) -> str:
    """Figure 4 and the appendix's singular values, of runs that stay; a table of the latter."""
    wanted = [cells.main(task, "ce") for task in MAPPED]
    rows = []
    for one in wanted:
        (task,) = one.config.tasks
        if task in absent_tasks(wanted):
            continue
        spaces, encoders = {}, {}
        for method in SHOWN:
            config = replace(cells.main(task, method).config, seed=SEEDS[0])
            folder = runs / f"map-{task}-{method}"
            with alone(folder):
                complete(config, folder, RunControl(resume=True))
            spaces[METHODS[method]] = space_of(folder)
            encoders[METHODS[method]] = space_of(folder, matched=False)
        encoders["LaCon, projected"] = spaces[METHODS["lacon"]]
        draw_spaces(spaces, results / f"maps-{task}.png")
        draw_spectra(encoders, results / f"spectrum-{task}.png")
        header = ["", *encoders]
        rows.append([task, *(f"{effective_rank(spectrum(s)):.1f}" for s in encoders.values())])
    if not rows:
        return ""
    return (
        "\n## Singular values of the test embeddings (appendix A.3)\n\nEffective rank, the "
        f"exponential of their entropy, of seed {SEEDS[0]}; of what the encoder gives, and of what "
        f"LaCon matches with labels:\n\n{markdown_table(header, rows)}\n"
    )
