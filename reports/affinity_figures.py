"""Figures of affinities: gains as a map, tasks as a tree, cosines by part of the encoder."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from multitask.affinity.groups import linkage_of
from multitask.affinity.result import Affinity
from reports.figures import SOFT, Drawing, heading, new_figure, seeds_text, styled
from reports.gradient_figures import PartCosines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAPPED = 6  # most tasks whose pairs are drawn by part of the encoder


def detail_of(found: Affinity) -> str:
    """Return estimator, number of measured batches, and seeds."""
    return f"{found.estimator}, {seeds_text(found.seeds)}; n = {found.rounds} batches"


def unit_of(found: Affinity) -> tuple[int, str]:
    """Return the factor with which gains are shown, and its unit."""
    return (1, "mean cosine") if found.estimator == "gram" else (100, "gain in % of the loss")


@styled
def gain_map(found: Affinity) -> Figure:
    """Draw the gains of pairs, blue where a task helps; an asterisk marks clear ones."""
    one, tasks = found.chosen, found.tasks
    scale, unit = unit_of(found)
    digits = 3 if scale == 1 else 2
    values = scale * one.pairs
    limit = float(np.abs(values).max()) or 1.0
    shown = np.where(np.eye(len(tasks), dtype=bool), np.nan, values)
    figure, axis = new_figure(max(5.2, 1.9 + 0.62 * len(tasks)), 2.6 + 0.4 * len(tasks))
    image = axis.imshow(shown, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    axis.set_xticks(range(len(tasks)), tasks, rotation=30, ha="right")
    axis.set_yticks(range(len(tasks)), [f"with {name}" for name in tasks])
    axis.grid(visible=False)
    for row, column in np.argwhere(~np.eye(len(tasks), dtype=bool)):
        low, high = one.ends[:, row, column]
        text = f"{values[row, column]:z.{digits}f}" + ("*" if low > 0 or high < 0 else "")
        colour = "white" if abs(values[row, column]) > 0.6 * limit else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    figure.colorbar(image, ax=axis, label=unit).outline.set_visible(False)
    heading(
        axis, "Gain of the task in the column", f"{detail_of(found)}\n* 95 % interval excludes 0"
    )
    return figure


@styled
def task_tree(found: Affinity) -> Figure:
    """Draw the average linkage of the tasks: those joined at the left help each other most."""
    from scipy.cluster.hierarchy import dendrogram

    figure, axis = new_figure(4.1, 2.2 + 0.3 * len(found.tasks))
    scale, unit = unit_of(found)
    dendrogram(
        linkage_of(scale * found.chosen.affinities),
        labels=list(found.tasks),
        orientation="right",
        ax=axis,
        color_threshold=0,
        above_threshold_color=SOFT,
    )
    axis.invert_xaxis()
    axis.yaxis.tick_right()
    axis.grid(visible=False)
    axis.set_xlabel(f"largest mean of two tasks minus theirs,\n{unit}")
    heading(axis, "Tasks that belong together", f"{detail_of(found)}\naverage linkage")
    return figure


def part_cosines(found: Affinity) -> PartCosines:
    """Return the mean cosines of all pairs by part of the encoder."""
    pairs = list(combinations(range(len(found.tasks)), 2))
    names = tuple(f"{found.tasks[i]} and {found.tasks[j]}" for i, j in pairs)
    means = np.array([[part[i, j] for i, j in pairs] for part in found.cosines])
    detail = f"mean of {found.rounds} steps, {seeds_text(found.seeds)}"
    return PartCosines(found.parts, names, means, detail)


@styled
def cosine_map(found: Affinity) -> Figure:
    """Draw the mean cosine of gradients, by pair of tasks and part of the encoder."""
    cosines = part_cosines(found)
    width = max(5.2, 1.8 + 0.75 * len(cosines.pairs))
    figure, axis = new_figure(width, 1.7 + 0.32 * len(cosines.parts))
    cosines.draw(axis)
    return figure


def affinity_figures(found: Affinity) -> Mapping[str, list[Drawing]]:
    """Return the drawings of a page by title of their section."""
    several = {
        "Gains": ("gains", "Gains of pairs of tasks, as in the table", gain_map),
        "Tree": ("tree", "Tasks by average linkage of their gains", task_tree),
        "Cosines": ("cosines", "Mean cosines of gradients by part of the encoder", cosine_map),
    }
    count = len(found.tasks)
    shown = {"Gains": True, "Tree": count > 2, "Cosines": count <= MAPPED}
    return {
        title: [Drawing(name, what, draw(found))]
        for title, (name, what, draw) in several.items()
        if shown[title]
    }
