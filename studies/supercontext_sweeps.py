"""What the cells of SuperConText give, and its Figures 4 and 5."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.drawing import new_figure, save_figure
from studies.claims import Table
from studies.seeds import SeedCell, shown, values
from studies.supercontext import HARD, LOSSES, SWEEP_SEEDS, SWEPT, Experiments, sweep_points


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
    found = results.of(results.cells.sweep(what, value, loss), split="dev")
    return {seed: figure for seed, figure in found.items() if seed in SWEEP_SEEDS}


def draw_sweeps(results: Results) -> None:
    """Figures 4, 5a and 5b: a figure a setting; 5c: the threshold of hard negatives."""
    lines: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for what, value, loss in sweep_points():
        if found := swept(results, what, value, loss):
            point = value, 100 * float(np.mean(list(found.values())))
            lines.setdefault(what, {}).setdefault(LOSSES[loss], []).append(point)
    for threshold in HARD["threshold"]:
        one = results.cells.hard("small", SWEPT, "threshold", threshold)
        if found := results.of(one, split="dev"):
            point = threshold, 100 * float(np.mean(list(found.values())))
            lines.setdefault("threshold", {}).setdefault("SuperLoss*", []).append(point)
    for what, several in lines.items():
        figure, axis = new_figure(4.2, 3.2)
        for title, line in several.items():
            axis.plot(*zip(*line, strict=True), marker="o", label=title)
        axis.set(xlabel=what, ylabel=f"{SWEPT} dev accuracy")
        axis.legend(fontsize=7)
        save_figure(figure, results.folder / f"sweep-{what}.png")
