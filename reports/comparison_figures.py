"""Figures of a comparison: gains, learning curves, confusion matrices and similarities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reports.comparison import Comparison, Difference
from reports.confusion import confusion, confusion_text
from reports.figures import (
    SOFT,
    Drawing,
    file_name,
    heading,
    mean_line,
    new_figure,
    seeds_text,
    signed,
    styled,
    wrapped,
)
from reports.gradient_figures import conflict_map, weights_over_time
from reports.scored_systems import ScoredSystem, first_task, systems_with, tasks_of
from tasks.metrics import OVERALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_CLASSES = 12  # of a confusion matrix that is drawn


@styled
def forest_plot(comparison: Comparison) -> Figure | None:
    """Draw the differences from the first system with their intervals, in points."""
    shown = comparison.differences
    if not shown:
        return None
    several = len(comparison.systems) > 2
    figure, axis = new_figure(4.1, 1.7 + (0.62 if several else 0.5) * len(shown))
    axis.axvline(0, color=SOFT, linewidth=1)
    for row, one in enumerate(shown):
        low, high = (100 * end for end in one.interval)
        colour = SOFT if not one.clear else "C0" if one.difference > 0 else "C1"
        axis.plot([low, high], [row, row], color=colour, linewidth=2.2 if one.clear else 1.2)
        value = 100 * one.difference
        fill = colour if one.clear else "white"
        marker = "D" if one.task == OVERALL else "o"
        axis.plot([value], [row], marker, color=colour, markerfacecolor=fill, markersize=7)
        axis.annotate(signed(value), (value, row), (0, 7), textcoords="offset points", ha="center")
    axis.set_yticks(range(len(shown)), [row_label(one, several) for one in shown])
    axis.set_ylim(len(shown) - 0.4, -0.8)
    axis.margins(x=0.08)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel("difference in points (score × 100)")
    seeds = {seed for one in comparison.systems for seed in one.real_seeds(*one.metrics)}
    mean = f"mean of {seeds_text(seeds)}; " if seeds else ""
    heading(
        axis,
        f"Gain over {wrapped(comparison.first.system.name, 30)}",
        f"{mean}95 % interval\nover examples and seeds; filled: clear",
    )
    return figure


def row_label(one: Difference, several: bool) -> str:
    """Return the label of a row, with the system if there are several."""
    label = f"{wrapped(f'{one.task} {one.metric}', 20)}\nn = {one.examples:,}"
    return f"{wrapped(one.system, 24)}\n{label}" if several else label


@styled
def learning_curve(systems: Sequence[ScoredSystem], task: str) -> Figure | None:
    """Draw the main dev metric by epoch: mean and standard deviation over the seeds."""
    from matplotlib.ticker import MaxNLocator

    metric = first_task(systems, task).kind.main_metric
    figure, axis = new_figure(4.1, 3.3)
    for number, one in enumerate(systems):
        if epochs := scores_by_epoch(one, task, metric):
            mean_line(axis, epochs, one.system.name, 0.04 * (number - (len(systems) - 1) / 2))
    if not axis.containers:
        return None
    seeds = {seed for one in systems for seed in one.real_seeds(task)}
    axis.set(xlabel="epoch", ylabel=f"dev {metric}")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlim(0.5, max(axis.get_xlim()[1] // 1, 1) + 0.5)
    bars = "mean ± s.d. of " if len(seeds) > 1 else ""
    heading(axis, task, f"n = {count(systems, task):,}; {bars}{seeds_text(seeds)}".rstrip("; "))
    axis.legend()
    return figure


def scores_by_epoch(one: ScoredSystem, task: str, metric: str) -> dict[float, list[float]]:
    """Return the dev scores of a system's runs of a task, by epoch, in the epochs that all have.

    Runs without any, such as merged ones, are left out.
    """
    runs = [
        {e["epoch"]: e["dev"][task][metric] for e in history if metric in e["dev"].get(task, {})}
        for run in one.system.runs
        if task in run.tasks and (history := run.metrics.get("history"))
    ]
    scored = [found for found in runs if found]
    common = sorted(set.intersection(*map(set, scored))) if scored else []
    return {epoch: [found[epoch] for found in scored] for epoch in common}


def count(systems: Sequence[ScoredSystem], task: str) -> int:
    """Return the number of dev examples of a task."""
    return systems_with(systems, task)[0].dev_examples(task)


@styled
def similarity_distribution(systems: Sequence[ScoredSystem], task: str = "sts") -> Figure | None:
    """Draw histograms of labels and predictions of the first seed (BEES, Figure 5).

    There is none without different labels, as for pairs in the right order.
    """
    having = systems_with(systems, task)
    if not having:
        return None
    labels = having[0].scores[task, having[0].seeds(task)[0]].targets
    if labels is not None and np.all(labels == labels[0]):
        return None
    figure, axis = new_figure(4.1, 3.3)
    built = having[0].system.task(task)
    scale = built.output.scale if built.output is not None else None
    values = having[0].predictions(task, having[0].seeds(task)[0]) if labels is None else labels
    low, high = scale or (float(values.min()), float(values.max()))
    edges = np.linspace(low, high, 26).tolist()
    for number, one in enumerate(having):
        scores = one.scores[task, one.seeds(task)[0]]
        if number == 0 and scores.targets is not None:
            label = f"labels: mean {scores.targets.mean():.2f}"
            axis.hist(scores.targets, edges, color="0.6", alpha=0.5, label=label)
        values = np.clip(one.predictions(task, one.seeds(task)[0]), low, high)
        label = wrapped(f"{one.system.name}: mean {values.mean():.2f}")
        style = ("-", "--", "-.", ":")[number % 4]
        axis.hist(values, edges, histtype="step", color=f"C{number}", lw=1.6, ls=style, label=label)
    what = "similarity" if built.kind.similarities else "number"
    examples = "pairs" if built.texts == 2 else "texts"
    axis.set(xlabel=f"{what}, from {low:g} to {high:g}", ylabel=examples)
    real = {seed for one in having for seed in one.real_seeds(task)}
    seeds = seeds_text(real & {one.seeds(task)[0] for one in having})
    detail = f"n = {count(having, task):,}; {seeds}".rstrip("; ")
    heading(axis, f"{task}: labels and predictions", detail)
    axis.legend()
    return figure


def curve_text(systems: Sequence[ScoredSystem], task: str) -> str:
    """Return the content of a figure of learning curves for screen readers."""
    metric = first_task(systems, task).kind.main_metric
    lines = [
        f"{one.system.name} "
        + ", ".join(
            f"{np.mean(values):.3f}" for values in scores_by_epoch(one, task, metric).values()
        )
        for one in systems
    ]
    return f"Dev {metric} on {task} by epoch: " + "; ".join(lines)


def all_figures(comparison: Comparison) -> Mapping[str, list[Drawing]]:
    """Return the drawings by title of their section; titles without drawings are left out."""
    systems = comparison.systems
    found: dict[str, list[tuple[str, str, Figure | None]]] = {
        "Gains": [
            ("gains", "Differences with intervals, as in the table", forest_plot(comparison))
        ],
        "Learning curves": [
            (f"learning curve {task}", curve_text(systems, task), learning_curve(systems, task))
            for task in tasks_of(systems)
        ],
        "Classes: labels and predictions": [
            (
                f"confusion {task} {number}",
                confusion_text(one, task),
                confusion(one, task),
            )
            for task in tasks_of(systems)
            for number, one in enumerate(systems, 1)
            if (task in one.metrics)
            and 1 < (one.system.task(task).kind.classes or 0) <= MOST_CLASSES
        ],
        "Similarities and numbers: labels and predictions": [
            (f"similarity {task}", f"Histogram of {task}", similarity_distribution(systems, task))
            for task in tasks_of(systems)
            if first_task(systems, task).kind.columns is None
        ],
    }
    for number, one in enumerate(systems, 1):
        several = next((r for r in one.system.runs if len(r.tasks) > 1), None)
        if several is not None:
            name = one.system.name
            what = f"Mean cosines of gradients by layer, {name}"
            found[f"Gradients of {name}: cosines"] = [
                (f"cosines {number}", what, conflict_map(several))
            ]
            found[f"Weights of {name}"] = [
                (
                    f"weights {number}",
                    f"Weights of the objectives by step, {name}",
                    weights_over_time(several),
                )
            ]
    drawn = {
        title: [Drawing(file_name(name), what, figure) for name, what, figure in several if figure]
        for title, several in found.items()
    }
    return {title: several for title, several in drawn.items() if several}
