"""The tables and figures of SCL-MOO beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reports.tables import markdown_table
from studies.claims import READING, Table, claims_table
from studies.scl_moo import (
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
from studies.scl_moo_epo import spaces_table, status_table
from studies.scl_moo_results import Results
from studies.seeds import kept, shown
from tasks import build_task, data_folder

OURS = ("ls", "epo")
AGAINST = ("ce", "scl")


def beside(paper: tuple[float, float] | None, ours: Mapping[int, float]) -> str:
    """`72.1 ± 5.4 / 61.0 ± 3.1`."""
    first = f"{paper[0]:.1f} ± {paper[1]:.1f}" if paper else ""
    found = shown(ours.values())
    return f"{first} / {found}" if first or found else ""


def few_shot_table(results: Results) -> Table:
    """Table 2 and more: a row a method and number of examples, a column a task."""
    rows = []
    for shots in SHOTS:
        for method, title in METHODS.items():
            cells = [
                beside(
                    FEW_SHOT_PAPER.get(task, {}).get(shots, {}).get(method),
                    results.few_shot(task, shots, method),
                )
                for task in TASKS
            ]
            rows.append([title, str(shots), *cells])
    return ["", "N", *TASKS], rows


def full_table(results: Results) -> Table:
    """Table 3."""
    rows = [
        [
            title,
            *(beside(FULL_PAPER[task][method], results.full(task, method)) for task in FULL),
            f"{np.mean([FULL_PAPER[task][method][0] for task in FULL]):.2f}",
        ]
        for method, title in METHODS.items()
    ]
    return ["", *FULL, "the paper's mean"], rows


def differences(results: Results, method: str, other: str) -> list[float]:
    """Of few-shot learning over (task, seed) pairs: the mean over the N that both have."""
    found: dict[tuple[str, int], list[float]] = {}
    for task in TASKS:
        for shots in SHOTS:
            mine, theirs = (results.few_shot(task, shots, name) for name in (method, other))
            for seed in sorted(mine.keys() & theirs.keys()):
                found.setdefault((task, seed), []).append(mine[seed] - theirs[seed])
    return [float(np.mean(several)) for several in found.values()]


def data_table(results: Results) -> Table:
    """Table 1, of the files there are; the paper's test sets are the leaderboard's."""
    rows = []
    for task in TASKS:
        one, folder = build_task(task), data_folder(results.cells.base.data)
        if all(Path(one.source.where(folder, split)).exists() for split in ("train", "dev")):
            train, dev = (len(one.read(folder, split)) for split in ("train", "dev"))
            classes = str(one.kind.classes)
            rows.append([task, *DATA_PAPER[task], f"{train:,}", f"{dev:,}", classes])
    return ["", "paper: train", "test", "ours: train", "dev", "classes"], rows


def significance_table(results: Results) -> Table:
    """LS and EPO against CE and CE + SCL."""
    return claims_table(
        {
            f"{METHODS[method]} - {METHODS[other]}": differences(results, method, other)
            for method in OURS
            for other in AGAINST
        }
    )


def sweep_table(results: Results) -> Table:
    """Figure 5 as numbers: dev accuracy on SST-2 with 50 examples."""
    rows = []
    for setting, method in swept_methods():
        cells = [shown(results.sweep(setting, value, method).values()) for value in GRID]
        rows.append([SWEEPS[setting], METHODS[method], *cells])
    return ["", "", *(f"{value:g}" for value in GRID)], rows


def report(results: Results, command: str, notes: str) -> str:
    """results/scl_moo.md."""
    cells = results.cells.every()
    done = sum(len(kept(one, results.folder)) >= len(one.seeds) for one in cells)
    parts = [
        "# SCL-MOO, beside ours",
        f"`{command}`",
        f"{done} of {len(cells)} cells are finished. Every cell: the paper's figure (RoBERTa base) "
        "/ ours, test accuracy in per cent, mean ± standard deviation (seeds).",
        notes,
        "## Data (Table 1)",
        markdown_table(*data_table(results)),
        "## Few-shot (Table 2, and three tasks more)",
        markdown_table(*few_shot_table(results)),
        "## Do LS and EPO beat the baselines?",
        markdown_table(*significance_table(results)),
        f"{READING} A pair is the mean over N; methods share a seed's examples. LS and EPO have "
        "batches of as many examples of each class (Algorithm 1), CE and CE + SCL random ones: a "
        "difference may be the batches'.",
        "## All data (Table 3)",
        markdown_table(*full_table(results)),
        "## What EPO did",
        markdown_table(*status_table(results)),
        "At a vertex one of the two has no say: the ray of the preference is out of reach there.",
        "## EPO at the representation and at the parameters, 50 examples",
        markdown_table(*spaces_table(results)),
        "## Figure 5: SST-2 dev accuracy with 50 examples",
        markdown_table(*sweep_table(results)),
    ]
    return "\n\n".join(parts) + "\n"
