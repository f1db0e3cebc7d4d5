"""Figures of affinities: gains as a map, tasks as a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from multitask.affinity.estimators import ESTIMATORS
from multitask.affinity.groups import linkage_of
from multitask.affinity.result import Affinity, sign_of
from reports.figures import SOFT, Drawing, heading, new_figure, seeds_text, signed_map, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def detail_of(found: Affinity) -> str:
    """Return estimator, number of measured batches, and seeds."""
    return f"{found.estimator}, {seeds_text(found.seeds)}; n = {found.rounds} batches"


@styled
def gain_map(found: Affinity) -> Figure:
    """Draw the gains of pairs, blue where a task helps; an asterisk marks clear ones."""
    one, tasks = found.chosen, found.tasks
    kind = ESTIMATORS[found.estimator]
    scale, digits, unit = kind.factor, kind.digits, kind.unit
    values = scale * one.pairs
    limit = float(np.abs(values).max()) or 1.0
    shown = np.where(np.eye(len(tasks), dtype=bool), np.nan, values)
    figure, axis = new_figure(max(5.2, 1.9 + 0.7 * len(tasks)), 2.6 + 0.4 * len(tasks))
    axis.set_xticks(range(len(tasks)), tasks, rotation=30, ha="right")
    axis.set_yticks(range(len(tasks)), [f"with {name}" for name in tasks])

    def text(row: int, column: int) -> str:
        clear = sign_of(*one.ends[:, row, column])
        return f"{values[row, column]:z.{digits}f}" + ("*" if clear else "")

    signed_map(axis, shown, text, limit, f"gain: {unit}")
    heading(
        axis, "Gain of the task in the column", f"{detail_of(found)}\n* 95 % interval excludes 0"
    )
    return figure


@styled
def task_tree(found: Affinity) -> Figure:
    """Draw the average linkage of the tasks: those joined at the left help each other most."""
    from scipy.cluster.hierarchy import dendrogram

    figure, axis = new_figure(4.1, 2.2 + 0.3 * len(found.tasks))
    scale, unit = ESTIMATORS[found.estimator].factor, ESTIMATORS[found.estimator].unit
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
    axis.set_xlabel(
        f"largest mean gain of two tasks minus theirs,\nin all subsets with both: {unit}"
    )
    heading(axis, "Tasks that belong together", f"{detail_of(found)}\naverage linkage")
    return figure


def affinity_figures(found: Affinity) -> Mapping[str, list[Drawing]]:
    """Return the drawings of a page by title of their section."""
    drawn = {"Gains": Drawing("gains", "Gains of pairs of tasks, as in the table", gain_map(found))}
    if len(found.tasks) > 2:
        what = "Tasks by average linkage of their gains"
        drawn["Tree"] = Drawing("tree", what, task_tree(found))
    return {title: [one] for title, one in drawn.items()}
