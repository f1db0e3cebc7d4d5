"""The tables and figures of SCL-MOO beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from multitask.assembly import build_tasks
from reports.tables import beside, markdown_table
from studies.chosen import absent_tasks
from studies.claims import READING, Table, claims_table
from studies.scl_moo.epo import spaces_table, status_table
from studies.scl_moo.experiments import (
    DATA_PAPER,
    FEW_SHOT_PAPER,
    FULL,
    FULL_PAPER,
    GRID,
    METHODS,
    SHOTS,
    SWEEPS,
    TASKS,
    swept_methods,
)
from studies.scl_moo.results import Results
from studies.seeds import how_far, shown
from tasks import data_folder

OURS = ("ls", "epo")
AGAINST = ("ce", "scl")


def both(paper: tuple[float, float] | None, ours: Mapping[int, float]) -> str:
    """`72.06 ± 5.4 / 61.0 ± 3.1 (10)`."""
    printed = f"{paper[0]:.2f} ± {paper[1]:.1f}" if paper else ""
    return beside(printed, shown(ours.values()))


def few_shot_table(results: Results) -> Table:
    """Table 2 and more: a row a method and number of examples, a column a task."""
    rows = []
    for shots in SHOTS:
        for method, title in METHODS.items():
            cells = [
                both(
                    FEW_SHOT_PAPER.get(task, {}).get(shots, {}).get(method),
                    results.few_shot(task, shots, method),
                )
                for task in TASKS
            ]
            rows.append([title, str(shots), *cells])
    return ["", "N", *TASKS], rows


def full_table(results: Results) -> Table:
    """Table 3."""
    rows = []
    for method, title in METHODS.items():
        ours = {task: results.full(task, method) for task in FULL}
        cells = [both(FULL_PAPER[task][method], ours[task]) for task in FULL]
        paper = np.mean([FULL_PAPER[task][method][0] for task in FULL])
        means = [100 * np.mean(list(found.values())) for found in ours.values() if found]
        whole = f"{np.mean(means):.1f}" if len(means) == len(FULL) else ""
        rows.append([title, *cells, f"{paper:.2f} / {whole}"])
    return ["", *FULL, "mean of all six"], rows


def data_table(results: Results) -> Table:
    """Table 1, of the files there are; the paper's test sets are the leaderboard's."""
    rows = []
    for task in TASKS:
        full = results.cells.full(task, "ce")
        if absent_tasks([full]):
            continue
        folder, counts = data_folder(full.config.data), []
        for one in (full, results.cells.few_shot(task, SHOTS[0], "ce")):
            drawn = build_tasks(one.config)[task]
            found = {split: drawn.read(folder, split) for split in ("train", "dev", "test")}
            counts += [f"{len(found[split]):,}" for split in ("train", "dev", "test")]
            if one is full:
                counts.insert(1, str(found["train"].leaked))
        rows.append([task, *DATA_PAPER[task], *(counts[n] for n in (0, 1, 2, 3, 5, 6))])
    header = ["", "paper: train", "test", "ours: train", "left out", "dev", "test"]
    return [*header, "few-shot: dev", "test"], rows


def significance_table(results: Results) -> Table:
    """LS and EPO against CE and CE + SCL, with few examples and with all."""
    lines: dict[str, list[float]] = {}
    for where, column in (("few-shot", 0), ("all data", 1)):
        for method in OURS:
            for other in AGAINST:
                claim = f"{METHODS[method]} - {METHODS[other]}, {where}"
                lines[claim] = results.pairs(method, other)[column]
    return claims_table(lines)


def sweep_table(results: Results) -> Table:
    """Figure 5 as numbers: dev accuracy on SST-2 with 50 examples."""
    rows = []
    for setting, method in swept_methods():
        cells = [shown(results.sweep(setting, value, method).values()) for value in GRID]
        rows.append([SWEEPS[setting], METHODS[method], *cells])
    return ["", "", *(f"{value:g}" for value in GRID)], rows


def report(results: Results, command: str, notes: str) -> str:
    """results/scl_moo.md."""
    parts = [
        "# SCL-MOO, beside ours",
        f"`{command}`",
        f"{how_far(results.cells.every(), results.folder)} "
        "Every cell: the paper's figure (RoBERTa base) "
        "/ ours, test accuracy in per cent, mean ± standard deviation (seeds).",
        notes,
        "## Data (Table 1)",
        markdown_table(*data_table(results)),
        "Left out: training examples whose texts are in dev or test of their task.",
        "## Few-shot (Table 2, and three tasks more)",
        markdown_table(*few_shot_table(results)),
        "## Do LS and EPO beat the baselines?",
        markdown_table(*significance_table(results)),
        f"{READING} A few-shot pair is the mean over N; methods share a seed's examples. LS and "
        "EPO have batches of as many examples of each class (Algorithm 1), CE and CE + SCL random "
        "ones: a difference may be the batches'.",
        "## All data (Table 3)",
        markdown_table(*full_table(results)),
        "## What EPO did",
        markdown_table(*status_table(results)),
        "Means over runs. At a vertex one of the two has no say, on the way to the ray of the "
        "preference or where it is out of reach; apart: the difference of preference x pull and "
        "preference x push over the last steps, in shares of the larger one.",
        "## EPO at the representation and at the parameters, 50 examples",
        markdown_table(*spaces_table(results)),
        "## Figure 5: SST-2 dev accuracy with 50 examples",
        markdown_table(*sweep_table(results)),
    ]
    return "\n\n".join(parts) + "\n"
