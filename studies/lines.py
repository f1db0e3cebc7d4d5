"""Figures of means over seeds along a number: shots, settings, classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from reports.drawing import new_figure, save_figure

Line = Mapping[float, Mapping[int, float]]  # number -> seed -> figure, in shares of one


def draw_lines(
    lines: Mapping[str, Line],
    file: Path,
    xlabel: str,
    ylabel: str,
    xticks: Sequence[float] | None = None,
) -> None:
    """A line a title, in per cent; no file where nothing is kept yet."""
    figure, axis = new_figure(4.2, 3.2)
    for title, line in lines.items():
        if points := [(x, 100 * np.mean(list(f.values()))) for x, f in line.items() if f]:
            axis.plot(*zip(*points, strict=True), marker="o", label=title)
    if not axis.lines:
        return
    axis.set(xlabel=xlabel, ylabel=ylabel)
    if xticks is not None:
        axis.set_xticks(list(xticks))
    axis.legend(fontsize=7)
    save_figure(figure, file)


def draw_curve(weights: Sequence[float], scores: Sequence[float], ylabel: str, file: Path) -> None:
    """Dev score over the weight of SMART, weights side by side as in BEES' figures."""
    figure, axis = new_figure(4.5, 3.2)
    axis.plot([f"{weight:g}" for weight in weights], scores, marker="o")
    axis.set_xlabel("weight of SMART")
    axis.set_ylabel(ylabel)
    save_figure(figure, file)
