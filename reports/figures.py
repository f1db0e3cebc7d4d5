"""Figures of a comparison and of papers (Matplotlib), in one style, and how they are written."""

from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import style
from matplotlib.figure import Figure

from common.files import atomic_path
from reports.comparison import Comparison
from reports.scores import TaskScores

# The common style, as a decorator of a function that draws or writes.
styled = style.context(Path(__file__).with_name("figures.mplstyle"))
SOFT = "#5b6470"  # secondary lines and marks
MOST_CLASSES = 12  # of a confusion matrix


def all_figures(found: Comparison) -> dict[str, Figure]:
    """Return the figures of a comparison by the names of their files."""
    figures = {"gains": forest_plot(found)} if found.differences else {}
    if any(run.metrics.get("history") for one in found.systems for run in one.runs):
        figures["epochs"] = epochs_figure(found)
    for task, one in found.tasks.items():
        classes = one.task.kind.classes
        if one.task.kind.labels is None and (classes is None or 1 < classes <= MOST_CLASSES):
            for number, system in enumerate(one.systems, 1):
                figures[f"predictions-{task}-{number}"] = predictions_figure(one, system)
    return figures


@styled
def forest_plot(found: Comparison) -> Figure:
    """Draw the differences from the first system with their intervals, in points."""
    figure = Figure(figsize=(4.6, 1.7 + 0.5 * len(found.differences)))
    axis = figure.subplots()
    axis.axvline(0, color=SOFT, linewidth=1)
    labels = [f"{fill(one.system, 24)}\n{one.task} {one.metric}" for one in found.differences]
    for row, one in enumerate(found.differences):
        colour = SOFT if not one.clear else "C0" if one.difference > 0 else "C1"
        axis.plot([100 * end for end in one.interval], [row, row], color=colour)
        inside = colour if one.clear else "white"
        axis.plot(100 * one.difference, row, "o", color=colour, markerfacecolor=inside)
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlabel("difference in points; 95 % interval; filled: clear")
    axis.set_title(fill(f"Gain over {found.first}", 30))
    return figure


@styled
def epochs_figure(found: Comparison) -> Figure:
    """Draw how each task's dev score grows in the runs of each system, as the mean of the seeds."""
    figure = Figure(figsize=(4.1, 0.7 + 1.6 * len(found.tasks)))
    axes = figure.subplots(len(found.tasks), sharex=True, squeeze=False)[:, 0]
    for axis, (task, one) in zip(axes, found.tasks.items(), strict=True):
        for number, system in enumerate(found.systems):
            points: dict[int, list[float]] = {}
            for run in [run for (name, _), run in system.cells.items() if name == task]:
                for past in run.metrics.get("history", []):
                    points.setdefault(past["epoch"], []).append(past["dev"][task][one.metric])
            means = [100 * np.mean(several) for several in points.values()]
            axis.plot([*points], means, "o-", color=f"C{number % 7}", label=fill(system.name, 28))
        axis.set_title(f"{task}: {one.metric} on dev")
    axes[-1].set(xlabel="epoch")
    axes[-1].xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left")
    return figure


@styled
def predictions_figure(one: TaskScores, system: str) -> Figure:
    """Draw predictions beside labels, all seeds together: a confusion matrix, or points."""
    from sklearn.metrics import ConfusionMatrixDisplay

    cells, names = one.cells(system), [fill(name, 14) for name in one.task.kind.names]
    targets = np.tile(one.targets, len(cells))
    predictions = np.concatenate([one.predictions[cell] for cell in cells])
    figure = Figure(figsize=(4.1, 4.3))
    axis = figure.subplots()
    if not names:
        axis.plot(targets, predictions, "o", alpha=0.3)
    else:
        ConfusionMatrixDisplay.from_predictions(
            targets,
            predictions,
            labels=range(len(names)),
            display_labels=names,
            normalize="true",
            values_format=".0%",
            cmap="Blues",
            im_kw={"vmin": 0, "vmax": 1},
            xticks_rotation=35.0,
            colorbar=False,
            ax=axis,
        )
        axis.grid(visible=False)
    axis.set(xlabel="prediction" if names else "label", ylabel="label" if names else "prediction")
    axis.set_title(f"{one.task.name}: {fill(system, 28)}")
    return figure


@styled
def save_figure(figure: Figure, file: Path) -> None:
    """Write the file atomically and without a date: the same figure has the same bytes."""
    kind = file.suffix.removeprefix(".")
    metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    content = BytesIO()  # with a full disk, Matplotlib would raise another error after the first
    figure.savefig(content, format=kind, metadata=metadata.get(kind))
    with atomic_path(file) as new:
        new.write_bytes(content.getvalue())
