"""Figures 4 and 5 of SuperConText: a line over each setting."""

from __future__ import annotations

from collections.abc import Mapping

from studies.lines import draw_lines
from studies.supercontext.experiments import HARD, LOSSES, SWEPT, sweep_points
from studies.supercontext.results import Results
from studies.supercontext.sweeps import swept


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
