"""Measurements behind a default value: python -m studies.defaults similarity-scale --data DIR

Each study compares a few settings over the same seeds, on dev. A finished cell is kept as one JSON
file under results/STUDY and not run again; the table of all finished ones is printed and written
beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.entry_point import start
from multitask.config import RunConfig
from reports.tables import markdown_table, mean_and_spread
from studies.cell_store import Cell, faults_of, read_cells
from studies.cells import add_kept_only, run_cells, write_table
from studies.faults import left_out

SEEDS = (11711, 1, 2)


@dataclass(frozen=True)
class Comparison:
    """Settings to compare: changes of `base` by name, the first one being the reference."""

    base: RunConfig
    settings: Mapping[str, Mapping[str, Any]]
    metrics: Sequence[tuple[str, ...]]  # paths in a cell's `dev`


def smart(weight: float, **changes: Any) -> dict[str, Any]:
    return {"smart_weight": {"sts": weight}, **changes}


MAIN = RunConfig(
    mode="multitask",
    tasks=("sst", "qqp", "sts"),
    sampling="annealed",
    combiner="pcgrad",
    steps_per_epoch=450,  # 64,800 examples in all
)
STUDIES = {
    # The scale on which similarity's squared error is computed, in the README's main command.
    "similarity-scale": Comparison(
        MAIN,
        {"0-1": {"similarity_scale": 1.0}, "0-5": {"similarity_scale": 5.0}},
        [("overall",), ("sst", "accuracy"), ("qqp", "accuracy"), ("sts", "pearson")],
    ),
    # Where SMART's noise is added, and of what size, on similarity.
    "smart-place": Comparison(
        RunConfig(
            mode="single",
            tasks=("sts",),
            limit=4000,
            lr=2e-5,
            head_lr=2e-5,
            similarity_scale=1.0,  # that of the kept cells
        ),
        {
            "plain": {},
            "normalised-1": smart(1.0),
            "projected-1": smart(1.0, smart_variant="projected"),
            "normalised-3": smart(3.0),
            "projected-3": smart(3.0, smart_variant="projected"),
            "words-normalised-1": smart(1.0, smart_place="words"),
        },
        [("sts", "pearson"), ("sts", "spearman")],
    ),
}


def cells_of(comparison: Comparison, base: RunConfig) -> list[Cell]:
    """Every setting with every seed, one seed after the other."""
    return [
        Cell(f"{name}-seed{seed}", base.changed(seed=seed, **changes))
        for seed in SEEDS
        for name, changes in comparison.settings.items()
    ]


def table(comparison: Comparison, cells: Mapping[str, Mapping[str, Any]]) -> str:
    """Mean and standard deviation over seeds, in points, and the difference from the first row.

    The difference is the mean over the seeds that both rows have.
    """
    header = ["setting", "seeds", *(" ".join(path) for path in comparison.metrics)]
    rows = []
    reference = next(iter(comparison.settings))
    for name in comparison.settings:
        seeds = [seed for seed in SEEDS if f"{name}-seed{seed}" in cells]
        row = [name, str(len(seeds))]
        for path in comparison.metrics:
            scores = {s: 100 * figure(cells[f"{name}-seed{s}"], path) for s in seeds}
            others = {
                s: 100 * figure(cells[f"{reference}-seed{s}"], path)
                for s in seeds
                if f"{reference}-seed{s}" in cells
            }
            text = mean_and_spread(list(scores.values()), 2) if scores else ""
            if name != reference and others:
                change = sum(scores[s] - others[s] for s in others) / len(others)
                text += f" ({change:+.2f})"
            row.append(text)
        rows.append(row)
    return markdown_table(header, rows)


def figure(cell: Mapping[str, Any], path: Sequence[str]) -> float:
    """A figure of a cell's dev metrics."""
    found = cell["dev"]
    for key in path:
        found = found[key]
    return float(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m studies.defaults", description=__doc__)
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", default="sample", help="folder with the CS224N files")
    parser.add_argument(
        "--limit", type=int, help="training examples per task (default: the study's)"
    )
    parser.add_argument("--epochs", type=int, help="number of epochs (default: 3)")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="bf16")
    parser.add_argument(
        "--cells", nargs="+", metavar="CELL", help="only cells that begin like these"
    )
    parser.add_argument(
        "--results", type=Path, help="folder of finished cells (default: results/STUDY)"
    )
    parser.add_argument("--runs", type=Path, help="folders of runs (default: runs/STUDY)")
    add_kept_only(parser)
    args = parser.parse_args()
    comparison = STUDIES[args.study]
    given = {
        name: value
        for name in ("data", "limit", "epochs", "encoder", "precision")
        if (value := getattr(args, name)) is not None
    }
    cells = cells_of(comparison, comparison.base.changed(**given))
    chosen = [one for one in cells if one.name.startswith(tuple(args.cells or [""]))]
    if not chosen:
        names = ", ".join(one.name for one in cells)
        parser.error(f"--cells: expected the beginning of some of {names}; found {args.cells[0]}")
    results = args.results or Path("results") / args.study
    if not args.kept_only:
        run_cells(chosen, results, args.runs or Path("runs") / args.study)
    tables = [table(comparison, read_cells(cells, results)), left_out(faults_of(cells, results))]
    text = "\n\n".join(filter(None, tables))
    write_table(results, text)
    print(text)


if __name__ == "__main__":
    start("python -m studies.defaults", main)
