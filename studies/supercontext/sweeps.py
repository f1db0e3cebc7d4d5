"""What the cells of SuperConText give, and its Figures 4 and 5."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studies.claims import Table, by_seed, claims_table
from studies.lines import draw_lines
from studies.seeds import SeedCell, of_seeds, shown, values
from studies.supercontext.experiments import (
    HARD,
    LOSSES,
    SWEEP_SEEDS,
    SWEEPS,
    SWEPT,
    Experiments,
    sweep_points,
)

LOWER = ("tau",)  # of which the paper finds the smaller ones better


class Results:
    """Accuracies of the kept cells by seed, however far the study is."""

    def __init__(self, cells: Experiments, folder: Path) -> None:
        self.cells, self.folder = cells, folder

    def of(self, one: SeedCell, how: str = "linear", split: str = "test") -> dict[int, float]:
        (task,) = one.config.tasks
        return values(one, self.folder, how, split, task, "accuracy")


def sweep_table(results: Results) -> Table:
    """Figures 4, 5a and 5b as numbers."""
    found: dict[tuple[str, str], list[str]] = {}
    for what, value, loss in sweep_points():
        if cell := shown(swept(results, what, value, loss).values()):
            found.setdefault((what, LOSSES[loss]), []).append(f"{value:g}: {cell}")
    rows = [[*key, ", ".join(cells)] for key, cells in found.items()]
    return ["", "", f"{SWEPT}, dev accuracy of the linear evaluation"], rows


def swept(results: Results, what: str, value: float, loss: str) -> dict[int, float]:
    """On dev; of the sweep's seeds alone."""
    return of_seeds(results.of(results.cells.sweep(what, value, loss), split="dev"), SWEEP_SEEDS)


def sweep_claims(results: Results) -> Table:
    """Section V: each setting's two ends, and SuperLoss against cross-entropy at every shape."""
    found: dict[str, list[float]] = {}
    for what, points in SWEEPS.items():
        better, other = (points[0], points[-1]) if what in LOWER else (points[-1], points[0])
        ends = (swept(results, what, value, "superloss") for value in (better, other))
        found[f"{what}: {better:g} - {other:g}"] = by_seed(*ends)
    title = "SuperLoss - Cross-entropy, by layers and units"
    found[title] = []
    for what in ("layers", "units"):
        for value in SWEEPS[what]:
            both = (swept(results, what, value, loss) for loss in ("superloss", "ce"))
            found[title] += by_seed(*both)
    return claims_table(found)


def draw_sweeps(results: Results) -> None:
    """Figures 4, 5a and 5b: a figure a setting; 5c: the threshold of hard negatives."""
    lines: dict[str, dict[str, dict[float, Mapping[int, float]]]] = {}
    for what, value, loss in sweep_points():
        line = lines.setdefault(what, {}).setdefault(LOSSES[loss], {})
        line[value] = swept(results, what, value, loss)
    lines["threshold"] = {
        "SuperLoss*": {
            threshold: results.of(
                results.cells.hard("small", SWEPT, "threshold", threshold), split="dev"
            )
            for threshold in HARD["threshold"]
        }
    }
    for what, several in lines.items():
        draw_lines(several, results.folder / f"sweep-{what}.png", what, f"{SWEPT} dev accuracy")
