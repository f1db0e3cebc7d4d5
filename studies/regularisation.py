"""SimCSE and SMART, alone and together, on each task: python -m studies.regularisation --data DIR

Cells are task x variant x seed, and for BEES' Figures 2 and 3 further weights of SMART on STS and
SST. A finished cell is kept as one JSON file and not run again; table and figures of all finished
ones are written beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.entry_point import start
from multitask.config import RunConfig
from pretrain.objectives import SimCSE
from reports.tables import markdown_table, mean_and_spread
from studies.cell_store import Cell, faults_of, read_cells
from studies.cells import run_cells, study_parser, write_table
from studies.faults import left_out
from studies.lines import draw_curve
from tasks import build_task

VARIANTS = {"plain": "-", "simcse": "SimCSE", "smart": "SMART", "both": "SimCSE + SMART"}
SEEDS = (11711, 1, 2)
WEIGHT = 1.0  # of SMART where nothing else is said: BEES' M14 to M16
WEIGHTS = (0.0, 0.3, 1.0, 3.0, 10.0)  # of the figures
FIGURES = ("sts", "sst")
TASKS = ("sst", "qqp", "sts")


def build_cells(base: RunConfig, runs: Path) -> list[Cell]:
    """All cells: one seed after the other, then the further weights of the figures."""
    kinds = [(task, variant, s) for s in SEEDS for variant in VARIANTS for task in TASKS]
    found = [build_cell(base, runs, task, variant, seed) for task, variant, seed in kinds]
    return found + [
        build_cell(base, runs, task, "smart", SEEDS[0], weight)
        for task in FIGURES
        for weight in WEIGHTS
        if weight not in (0, WEIGHT)
    ]


def build_cell(
    base: RunConfig, runs: Path, task: str, variant: str, seed: int, weight: float = WEIGHT
) -> Cell:
    """One cell; with SimCSE it starts from the pre-training run of its task and seed."""
    scale = 1.0  # of similarities, in the kept cells
    plain = base.changed(mode="single", tasks=(task,), seed=seed, similarity_scale=scale)
    config, before = plain, None
    if variant in ("smart", "both"):
        config = config.changed(smart_weight={task: weight})
    if variant in ("simcse", "both"):
        # On the sentences of the task's own training examples.
        pretraining = plain.changed(
            mode="pretrain",
            objective="simcse",
            **SimCSE.defaults,
        )
        before = Cell(f"{task}-pretraining-seed{seed}", pretraining)
        config = config.changed(init=str(runs / before.name))
    return Cell(cell_name(task, variant, seed, weight), config, before)


def cell_name(task: str, variant: str, seed: int, weight: float = WEIGHT) -> str:
    shown = "" if weight == WEIGHT else f"{weight:g}"
    return f"{task}-{variant}{shown}-seed{seed}"


def score(kept: Mapping[str, Any], task: str) -> float:
    return float(kept["dev"][task][metric_of(task)])


def metric_of(task: str) -> str:
    return build_task(task).kind.main_metric


def table(cells: Mapping[str, Mapping[str, Any]]) -> str:
    """Mean and standard deviation over the seeds, a row a variant, a column a task."""
    rows = []
    for variant, title in VARIANTS.items():
        row = [title]
        for task in TASKS:
            names = [cell_name(task, variant, seed) for seed in SEEDS]
            found = [score(cells[name], task) for name in names if name in cells]
            row.append(f"{mean_and_spread(found, 4)} ({len(found)})" if found else "")
        rows.append(row)
    return markdown_table(["", *(f"{t} {metric_of(t)} (seeds)" for t in TASKS)], rows)


def curve(cells: Mapping[str, Mapping[str, Any]], task: str) -> tuple[list[float], list[float]]:
    """Weights of SMART for which there is a cell, and the dev scores."""
    weights, scores = [], []
    for weight in WEIGHTS:
        name = cell_name(task, "smart", SEEDS[0], weight)
        if kept := cells.get(name if weight else cell_name(task, "plain", SEEDS[0])):
            weights.append(weight)
            scores.append(score(kept, task))
    return weights, scores


def write_reports(folder: Path, every: Sequence[Cell]) -> str:
    """The table and both figures of what is there; returns the table.

    How many cells are left out and why stands below it; a figure of cells that are no more goes.
    """
    cells = read_cells(every, folder)
    text = "\n\n".join(filter(None, [table(cells), left_out(faults_of(every, folder))]))
    write_table(folder, text)
    for task in FIGURES:
        weights, scores = curve(cells, task)
        file = folder / f"smart-weight-{task}.png"
        if len(weights) > 1:
            draw_curve(weights, scores, f"{task} dev {metric_of(task)}", file)
        else:
            file.unlink(missing_ok=True)
    return text


def main() -> None:
    names = [cell.name for cell in build_cells(RunConfig(mode="single", tasks=()), Path())]
    parser = study_parser("regularisation", __doc__, names, limit=3000)
    args = parser.parse_args()
    base = RunConfig(
        mode="single",
        tasks=(),
        data=args.data,
        limit=args.limit,
        encoder=args.encoder,
        precision=args.precision,
    )
    found = {cell.name: cell for cell in build_cells(base, args.runs)}
    if not args.kept_only:
        run_cells([found[name] for name in args.cells], args.results, args.runs)
    print(write_reports(args.results, list(found.values())))


if __name__ == "__main__":
    start("python -m studies.regularisation", main)
