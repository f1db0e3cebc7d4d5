"""What the cells of SuperConText give, and its Figures 4 and 5."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studies.claims import Table
from studies.lines import draw_lines
from studies.seeds import SeedCell, of_seeds, shown, values
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
    return of_seeds(results.of(results.cells.sweep(what, value, loss), split="dev"), SWEEP_SEEDS)


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
