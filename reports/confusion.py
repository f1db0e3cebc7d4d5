"""Confusion matrices: counts, shares of each label, figure and text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reports.figures import heading, new_figure, seeds_text, styled, wrapped
from reports.scored_systems import ScoredSystem

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@styled
def confusion(one: ScoredSystem, task: str) -> Figure:
    """Draw a confusion matrix: shares of each label, and counts summed over the seeds.

    BEES, Figure 4.
    """
    counts = confusion_counts(one, task)
    share = counts / np.maximum(1, counts.sum(1, keepdims=True))
    names = [wrapped(name, 14) for name in one.system.task(task).kind.names]
    figure, axis = new_figure(4.1, 3.3 if len(names) < 3 else 4.3)
    axis.imshow(share, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (row, column), number in np.ndenumerate(counts):
        colour = "white" if share[row, column] > 0.5 else "black"
        text = f"{share[row, column]:.0%}\n{number:,}"
        axis.text(
            column,
            row,
            text,
            ha="center",
            va="center",
            fontsize=9 if len(names) < 6 else 7,
            color=colour,
        )
    axis.set_xticks(range(len(names)), names, rotation=35 if len(names) > 2 else 0)
    for label in axis.get_xticklabels():
        label.set(ha="right" if len(names) > 2 else "center", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), names)
    axis.set(xlabel="prediction", ylabel="label")
    axis.grid(visible=False)
    seeds = seeds_text(one.real_seeds(task))
    several = f"sums of {seeds}" if len(one.seeds(task)) > 1 else seeds
    heading(
        axis,
        f"{task}: {wrapped(one.system.name, 36)}",
        f"% of the label's row, and counts\nn = {one.dev_examples(task):,}; {several}".rstrip("; "),
    )
    return figure


def confusion_counts(one: ScoredSystem, task: str) -> np.ndarray:
    """Count examples by label and prediction (C, C), summed over the seeds."""
    from sklearn.metrics import confusion_matrix

    counts = []
    for seed in one.seeds(task):
        scores = one.scores[task, seed]
        every = range(scores.values.shape[1])
        predicted = one.predictions(task, seed)
        counts.append(confusion_matrix(scores.targets, predicted, labels=every))
    return np.sum(counts, axis=0)


def confusion_text(one: ScoredSystem, task: str) -> str:
    """Return the content of a confusion matrix for screen readers."""
    counts = confusion_counts(one, task)
    names = one.system.task(task).kind.names
    rows = [
        f"label {name}: predicted "
        + ", ".join(f"{n} {other}" for n, other in zip(row, names, strict=True))
        for name, row in zip(names, counts, strict=True)
    ]
    return f"Confusion matrix of {task}, {one.system.name}. " + "; ".join(rows)
