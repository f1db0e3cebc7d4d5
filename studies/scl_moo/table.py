"""The tables of SCL-MOO beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from multitask.assembly import plain_tasks
from reports.tables import beside
from studies.cell_selection import absent_tasks
from studies.claims import Table, by_seed, claims_table
from studies.scl_moo import paper
from studies.scl_moo.experiments import (
    FULL,
    GRID,
    METHODS,
    SHOTS,
    SWEEP_SEEDS,
    SWEEPS,
    TASKS,
    swept_methods,
)
from studies.scl_moo.results import Results
from studies.seeds import of_seeds, shown
from tasks import data_folder

OURS = ("ls", "epo")
AGAINST = ("ce", "scl")


def both(printed: tuple[float, float] | None, ours: Mapping[int, float]) -> str:
    """`72.06 ± 5.4 / 61.0 ± 3.1 (10)`."""
    first = f"{printed[0]:.2f} ± {printed[1]:.1f}" if printed else ""
    return beside(first, shown(ours.values()))


def few_shot_table(results: Results) -> Table:
    """Table 2 and more: a row a method and number of examples, a column a task."""
    rows = []
    for shots in SHOTS:
        for method, title in METHODS.items():
            cells = [
                both(
                    paper.FEW_SHOT.get(task, {}).get(shots, {}).get(method),
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
        cells = [both(paper.FULL[task][method], ours[task]) for task in FULL]
        printed = np.mean([paper.FULL[task][method][0] for task in FULL])
        means = [100 * np.mean(list(found.values())) for found in ours.values() if found]
        whole = f"{np.mean(means):.1f}" if len(means) == len(FULL) else ""
        rows.append([title, *cells, f"{printed:.2f} / {whole}"])
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
            drawn = plain_tasks(one.config)[task]
            found = {split: drawn.read(folder, split) for split in ("train", "dev", "test")}
            counts += [f"{len(found[split]):,}" for split in ("train", "dev", "test")]
            if one is full:
                counts.insert(1, str(found["train"].leaked))
        rows.append([task, *paper.DATA[task], *(counts[n] for n in (0, 1, 2, 3, 5, 6))])
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


def chosen_table(results: Results) -> Table:
    """Each method at the point of Figure 5 that is best on dev, and what it has on test.

    CE has no setting to choose.
    """
    plain = of_seeds(results.test(results.cells.few_shot("sst2", 50, "ce")), SWEEP_SEEDS)
    rows = []
    for method in METHODS:
        if method == "ce":
            continue
        points = [(s, v) for s, m in swept_methods() if m == method for v in GRID]
        dev = {p: found for p in points if (found := results.sweep(*p, method))}
        if not dev:
            continue
        best = max(dev, key=lambda point: fmean(dev[point].values()))
        test = results.sweep(*best, method, split="test")
        gains = by_seed(test, plain)
        above = f"{sum(gain > 0 for gain in gains)} of {len(gains)}"
        cells = [shown(found.values()) for found in (dev[best], test, plain)]
        rows.append([METHODS[method], f"{SWEEPS[best[0]]} {best[1]:g}", *cells, above])
    return ["", "chosen on dev", "dev", "test", "CE: test", "seeds above CE"], rows
