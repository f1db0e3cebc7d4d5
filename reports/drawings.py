"""Figures of a comparison: gains, learning curves, predictions beside labels, cosines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from multitask.loop.telemetry import read_steps
from multitask.runs import Run
from reports.comparison import Comparison, seeds_text
from reports.figures import SOFT, Drawing, heading, mean_line, new_figure, styled, wrapped
from reports.scores import TaskScores, seeds_of
from reports.systems import System

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 12  # of a confusion matrix that is drawn


def all_drawings(found: Comparison) -> dict[str, list[Drawing]]:
    """Return the drawings by title of their section; titles without drawings are left out."""
    several: dict[str, list[tuple[str, Figure | None]]] = {
        "Gains": [("gains", forest_plot(found))] if found.differences else [],
        "Labels and predictions": [*predictions(found)],
        "Learning curves": [
            (f"learning curve {task}", learning_curve(one, found.systems))
            for task, one in found.tasks.items()
        ],
        "Cosines of gradients": [
            (f"cosines {number}", cosine_map(one)) for number, one in enumerate(found.systems, 1)
        ],
    }
    drawn = {
        title: [Drawing(name, figure) for name, figure in figures if figure is not None]
        for title, figures in several.items()
    }
    return {title: drawings for title, drawings in drawn.items() if drawings}


@styled
def forest_plot(found: Comparison) -> Figure:
    """Draw the differences from the first system with their intervals, in points."""
    figure, axis = new_figure(4.6, 1.7 + 0.5 * len(found.differences))
    axis.axvline(0, color=SOFT, linewidth=1)
    labels = []
    for row, one in enumerate(found.differences):
        low, high = (100 * end for end in one.interval)
        colour = SOFT if not one.clear else "C0" if one.difference > 0 else "C1"
        axis.plot([low, high], [row, row], color=colour)
        fill = colour if one.clear else "white"
        axis.plot([100 * one.difference], [row], "o", color=colour, markerfacecolor=fill)
        labels.append(f"{wrapped(one.system, 24)}\n{one.task} {one.metric}")
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.4, -0.6)
    axis.set_xlabel("difference in points (score × 100)")
    heading(axis, wrapped(f"Gain over {found.first}", 30), "95 % interval; filled: clear")
    return figure


@styled
def learning_curve(one: TaskScores, systems: Sequence[System]) -> Figure | None:
    """Draw the main dev metric by epoch: mean and standard deviation over the seeds."""
    from matplotlib.ticker import MaxNLocator

    figure, axis = new_figure(4.1, 3.3)
    for number, system in enumerate(systems):
        if epochs := scores_by_epoch(system, one.task.name, one.metric):
            mean_line(axis, epochs, system.name, 0.04 * number)
    if not axis.containers:
        return None
    axis.set(xlabel="epoch", ylabel=f"dev {one.metric}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    heading(axis, one.task.name, detail_of(one, [system.name for system in systems]))
    axis.legend()
    return figure


def scores_by_epoch(one: System, task: str, metric: str) -> dict[float, list[float]]:
    """Return the dev scores of a system's runs of a task, in the epochs that all of them have."""
    histories = [
        {e["epoch"]: e["dev"][task][metric] for e in history if metric in e["dev"].get(task, {})}
        for (name, _), run in one.cells.items()
        if name == task and (history := run.metrics.get("history"))
    ]
    common = sorted(set.intersection(*map(set, histories))) if histories else []
    return {epoch: [found[epoch] for found in histories] for epoch in common}


def predictions(found: Comparison) -> Iterator[tuple[str, Figure]]:
    """Yield a confusion matrix for each system and task of classes, and histograms of numbers."""
    for task, one in found.tasks.items():
        if one.task.kind.columns is None:
            yield f"histogram {task}", histogram(one)
        elif 1 < (one.task.kind.classes or 0) <= MOST_CLASSES:
            for number, system in enumerate(one.systems, 1):
                yield f"confusion {task} {number}", confusion(one, system)


@styled
def confusion(one: TaskScores, system: str) -> Figure:
    """Draw a confusion matrix: shares of each label, all seeds together (BEES, Figure 4)."""
    from sklearn.metrics import ConfusionMatrixDisplay

    cells, names = one.cells(system), [wrapped(name, 14) for name in one.task.kind.names]
    figure, axis = new_figure(4.1, 4.3)
    ConfusionMatrixDisplay.from_predictions(
        np.tile(one.targets, len(cells)),
        np.concatenate([one.predictions[cell] for cell in cells]),
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
    axis.set(xlabel="prediction", ylabel="label")
    axis.grid(visible=False)
    title = f"{one.task.name}: {wrapped(system, 28)}"
    heading(axis, title, f"shares of each label; {detail_of(one, [system])}")
    return figure


@styled
def histogram(one: TaskScores) -> Figure:
    """Draw labels and predictions of the first seed of each system (BEES, Figure 5)."""
    figure, axis = new_figure(4.1, 3.3)
    scale = one.task.output.scale if one.task.output is not None else None
    low, high = scale or (float(one.targets.min()), float(one.targets.max()))
    edges = np.linspace(low, high, 26).tolist()
    label = f"labels: mean {one.targets.mean():.2f}"
    axis.hist(one.targets, edges, color="0.6", alpha=0.5, label=label)
    for number, name in enumerate(one.systems):
        values = np.clip(one.predictions[one.cells(name)[0]], low, high)
        label, style = wrapped(f"{name}: mean {values.mean():.2f}"), ("-", "--", "-.", ":")
        axis.hist(values, edges, histtype="step", ls=style[number % 4], lw=1.6, label=label)
    axis.set(xlabel="similarity or number", ylabel="examples")
    heading(axis, f"{one.task.name}: labels and predictions", f"n = {len(one.ids):,}; first seed")
    axis.legend()
    return figure


@styled
def cosine_map(system: System) -> Figure | None:
    """Draw the mean cosines of gradients of a system's first run with telemetry, red below 0."""
    cosines = next((found for run in system.runs if (found := mean_cosines(run))), {})
    if not cosines:
        return None
    pairs = sorted({pair for several in cosines.values() for pair in several})
    means = np.array([[of.get(pair, np.nan) for pair in pairs] for of in cosines.values()])
    figure, axis = new_figure(max(4.1, 1.8 + 0.75 * len(pairs)), 1.7 + 0.32 * len(cosines))
    limit = max(0.05, float(np.nanmax(np.abs(means))))
    image = axis.imshow(means, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    figure.colorbar(image, ax=axis, label="mean cosine")
    axis.set_xticks(range(len(pairs)), [pair.replace(" and ", "\nand ") for pair in pairs])
    axis.set_yticks(range(len(cosines)), list(cosines))
    axis.grid(visible=False)
    for row, column in np.argwhere(np.isfinite(means)):
        mean = means[row, column]
        colour = "white" if abs(mean) > 0.6 * limit else "black"
        axis.text(column, row, f"{mean:z.2f}", ha="center", va="center", fontsize=9, color=colour)
    heading(axis, wrapped(system.name, 30), "mean over the steps of one run\nbelow 0: in conflict")
    return figure


def mean_cosines(run: Run) -> dict[str, dict[str, float]]:
    """Return the mean cosines in a run's telemetry by part of the encoder and pair of objectives.

    A run without them has none.
    """
    file = run.folder / "telemetry.jsonl"
    found: dict[str, dict[str, list[float]]] = {}
    for line in read_steps(file) if file.exists() else ():
        for part, by_pair in line.get("layers", {}).items():
            for pair, cosine in by_pair.items():
                found.setdefault(part, {}).setdefault(pair, []).append(cosine)
    return {
        part: {pair: fmean(values) for pair, values in several.items()}
        for part, several in found.items()
    }


def detail_of(one: TaskScores, systems: Sequence[str]) -> str:
    """Return the numbers of examples and seeds."""
    return f"n = {len(one.ids):,}; {seeds_text(seeds_of(systems, [one]))}".rstrip("; ")
