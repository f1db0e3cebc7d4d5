"""SimCSE and SMART, alone and together, on each task: python -m studies.regularisation --data DIR

Cells are task x variant x seed, and for BEES' Figures 2 and 3 further weights of SMART on STS and
SST. A finished cell is kept as one JSON file and not run again; table and figures of all finished
ones are written beside them.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from minbert.errors import UserError
from minbert.json_files import read_json, write_json
from multitask.config import RunConfig
from multitask.run import complete
from pretrain.objectives import build_objective
from reports.cells import cell, kept_cell
from reports.tables import markdown_table
from tasks import build_task

VARIANTS = {"plain": "-", "simcse": "SimCSE", "smart": "SMART", "both": "SimCSE + SMART"}
SEEDS = (11711, 1, 2)
WEIGHT = 1.0  # of SMART where nothing else is said: BEES' M14 to M16
WEIGHTS = (0.0, 0.3, 1.0, 3.0, 10.0)  # of the figures
FIGURES = ("sts", "sst")
TASKS = ("sst", "qqp", "sts")
# Gao et al. (2021), section 4.
PRETRAINING = {"objective": "simcse", "batch_size": 64, "epochs": 1, "lr": 3e-5}


def cell_names() -> list[str]:
    """All cells: one seed after the other, then the further weights of the figures."""
    names = [f"{t}-{v}-seed{s}" for s in SEEDS for v in VARIANTS for t in TASKS]
    return names + [
        f"{task}-smart{weight:g}-seed{SEEDS[0]}"
        for task in FIGURES
        for weight in WEIGHTS
        if weight not in (0, WEIGHT)
    ]


def cell_config(name: str, base: RunConfig, runs: Path) -> RunConfig:
    """The configuration of a cell; with SimCSE it starts from the pre-training run of its seed."""
    found = re.fullmatch(r"(\w+)-(plain|simcse|smart|both)([\d.]*)-seed(\d+)", name)
    assert found is not None
    task, variant, weight, seed = found.groups()
    config = replace(base, mode="single", tasks=(task,), seed=int(seed))
    if variant in ("smart", "both"):
        config = replace(config, smart_weight={task: float(weight or WEIGHT)})
    if variant in ("simcse", "both"):
        config = replace(config, init=str(runs / f"{task}-pretraining-seed{seed}"))
    return config


def pretraining_config(config: RunConfig) -> RunConfig:
    """SimCSE on the sentences of the cell's own training examples."""
    plain = replace(config, mode="pretrain", smart_weight={}, init=None)
    return replace(plain, **PRETRAINING)  # type: ignore[arg-type]


def run_cell(name: str, base: RunConfig, runs: Path, file: Path) -> None:
    config = cell_config(name, base, runs)
    if kept_cell(file, config):
        return
    if config.init is not None:
        before = pretraining_config(config)
        kept = file.with_name(f"{Path(config.init).name}.json")
        complete(before, Path(config.init), resume=True, make_tasks=build_objective)
        write_json(kept, cell(Path(config.init)))
    complete(config, runs / name, resume=True)
    write_json(file, cell(runs / name))


def read_cells(folder: Path) -> dict[str, dict[str, Any]]:
    """The finished cells of a folder, by name."""
    files = {name: folder / f"{name}.json" for name in cell_names()}
    return {name: read_json(file, UserError) for name, file in files.items() if file.exists()}


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
            names = [f"{task}-{variant}-seed{seed}" for seed in SEEDS]
            found = [score(cells[name], task) for name in names if name in cells]
            spread = f" ± {np.std(found, ddof=1):.4f}" if len(found) > 1 else ""
            row.append(f"{np.mean(found):.4f}{spread} ({len(found)})" if found else "")
        rows.append(row)
    return markdown_table(["", *(f"{t} {metric_of(t)} (seeds)" for t in TASKS)], rows)


def curve(cells: Mapping[str, Mapping[str, Any]], task: str) -> tuple[list[float], list[float]]:
    """Weights of SMART for which there is a cell, and the dev scores."""
    weights, scores = [], []
    for weight in WEIGHTS:
        middle = {0.0: "plain", WEIGHT: "smart"}.get(weight, f"smart{weight:g}")
        if kept := cells.get(f"{task}-{middle}-seed{SEEDS[0]}"):
            weights.append(weight)
            scores.append(score(kept, task))
    return weights, scores


def draw_curve(weights: Sequence[float], scores: Sequence[float], task: str, file: Path) -> None:
    """Dev score over the weight of SMART, weights side by side as in BEES' figures."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    axis.plot([f"{weight:g}" for weight in weights], scores, marker="o")
    axis.set_xlabel("weight of SMART")
    axis.set_ylabel(f"{task} dev {metric_of(task)}")
    temporary = file.with_name(f"{file.stem}.tmp{file.suffix}")
    figure.savefig(temporary, dpi=130)
    temporary.replace(file)


def write_reports(folder: Path) -> str:
    """The table and both figures of what is there; returns the table."""
    cells = read_cells(folder)
    text = table(cells)
    (folder / "table.md").write_text(text + "\n")
    for task in FIGURES:
        weights, scores = curve(cells, task)
        if len(weights) > 1:
            draw_curve(weights, scores, task, folder / f"smart-weight-{task}.png")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.regularisation", description=__doc__)
    parser.add_argument("--data", default="sample", help="folder with the CS224N files")
    parser.add_argument("--limit", type=int, default=3000, help="training examples of a task")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument("--results", type=Path, default=Path("results/regularisation"))
    parser.add_argument("--runs", type=Path, default=Path("runs/regularisation"))
    parser.add_argument(
        "--cells", nargs="*", choices=cell_names(), default=cell_names(), metavar="CELL"
    )
    args = parser.parse_args()
    base = RunConfig(
        mode="single",
        tasks=(),
        data=args.data,
        limit=args.limit,
        encoder=args.encoder,
        precision=args.precision,
    )
    args.results.mkdir(parents=True, exist_ok=True)
    try:
        for name in args.cells:
            run_cell(name, base, args.runs, args.results / f"{name}.json")
    except UserError as error:
        parser.exit(error.status, f"{parser.prog}: {error}\n")
    print(write_reports(args.results))


if __name__ == "__main__":
    main()
