"""Figures of the papers, drawn from stored figures: `results/bees.png` and the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.combiners import OF_GRADIENTS, OF_LOSSES, OF_PAIRS, PAIRS
from papers.content import content_of
from papers.evidence import Difference, half_width
from papers.page import evidence_of
from papers.scl_moo import FRONT, METHODS, SHOTS, front
from papers.store import Store
from reports.figures import save_figure, styled

MARKERS = "os^Dv"  # lines also differ without colour
WEIGHTS = {
    "sts": {0.0: "M13", 0.3: "F-sts-0.3", 1.0: "M16", 3.0: "M17", 10.0: "F-sts-10"},
    "sst": {0.0: "M11", 0.3: "F-sst-0.3", 1.0: "M14", 3.0: "F-sst-3", 10.0: "F-sst-10"},
}


def draw(name: str, results: Path) -> None:
    """Draw the figure of a paper that has one, unless one of its runs is missing."""
    drawings = {"bees": draw_bees, "scl_moo": draw_scl_moo, "combiners": draw_combiners}
    drawing = drawings.get(name)
    if drawing is not None:
        drawing(Store(results, name), results / f"{name}.png")


def percent(store: Store, row: str, task: str, split: str, metric: str) -> list[float]:
    return [100 * one for one in store.values(row, task, split, metric).values()]


@styled
def draw_bees(store: Store, file: Path) -> None:
    """Draw Figures 2 and 3 (SMART's weight), 4 (confusion of M14), and 5 (similarities of M17)."""
    metrics = {"sts": "pearson", "sst": "accuracy"}
    curves = {
        task: {at: percent(store, row, task, "dev", metrics[task]) for at, row in rows.items()}
        for task, rows in WEIGHTS.items()
    }
    counts = np.array(
        [
            [total(store, "M14", "sst", f"label {i} predicted {k}") for k in range(5)]
            for i in range(5)
        ]
    )
    bins = [low / 2 for low in range(10)]
    similarities = {
        what: [total(store, "M17", "sts", f"{what} from {low:g}") for low in bins]
        for what in ("label", "prediction")
    }
    if not (all(all(one.values()) for one in curves.values()) and counts.sum()):
        return
    figure = Figure(figsize=(9.0, 7.0))
    axes: Sequence[Axes] = figure.subplots(2, 2).flatten()
    for axis, (task, points) in zip(axes, curves.items(), strict=False):
        mean_line(axis, dict(enumerate(points.values())), task)
        axis.set_xticks(range(len(points)), [f"{weight:g}" for weight in points])
        axis.set(xlabel="weight of SMART", ylabel=f"{metrics[task]} (%)")
        axis.set_title(f"{task}, dev", pad=6)
    axes[2].imshow(counts / counts.sum(1, keepdims=True), cmap="Blues", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        axes[2].text(column, row, f"{count:g}", ha="center", va="center")
    axes[2].set(xlabel="prediction of M14", ylabel="label")
    axes[2].grid(visible=False)
    for shift, (what, values) in zip((0.12, 0.36), similarities.items(), strict=True):
        axes[3].bar([low + shift for low in bins], values, width=0.22, label=what)
    axes[3].set(xlabel="similarity, M17", ylabel="pairs of dev, all seeds")
    axes[3].legend()
    save_figure(figure, file)


def total(store: Store, row: str, task: str, metric: str) -> float:
    """Return a count, summed over seeds."""
    return sum(store.values(row, task, "dev", metric).values())


@styled
def draw_scl_moo(store: Store, file: Path) -> None:
    """Draw Figure 1 (SST-2 by the number of examples), and the fronts of LS and EPO."""
    lines: dict[str, dict[float, list[float]]] = {
        method: {n: percent(store, f"sst2-{n}-{method}", "sst2", "test", "accuracy") for n in SHOTS}
        for method in METHODS
    }
    fronts = {method: front_points(store, method) for method in ("ls", "epo")}
    if not all(all(one.values()) for one in lines.values()) or not all(fronts.values()):
        return
    figure = Figure(figsize=(9.0, 3.6))
    axes: Sequence[Axes] = figure.subplots(1, 2)
    for number, (method, points) in enumerate(lines.items()):
        mean_line(axes[0], points, method, shift=float(number))
    axes[0].set(xlabel="training examples of SST-2", ylabel="test accuracy (%)")
    axes[0].legend()
    # The others lie close together: with much pull, LS gives all texts nearly the same embedding.
    near = sorted(point for both in fronts.values() for point in both.values())[2:]
    magnified = axes[1].inset_axes((0.14, 0.1, 0.45, 0.42))
    for method, both in fronts.items():
        best = front(both)
        for axis in (axes[1], magnified):
            (line,) = axis.plot(*zip(*(both[one] for one in best), strict=True), label=method)
            for name, point in both.items():
                filled = line.get_color() if name in best else "none"
                axis.plot(*point, "o", color=line.get_color(), markerfacecolor=filled)
                if axis is magnified or point not in near:
                    axis.annotate(name, point, fontsize="small")
    low, high = np.min(near, axis=0), np.max(near, axis=0)
    (left, bottom), (right, top) = low - (high - low) / 8, high + (high - low) / 8
    magnified.set(xlim=(left, right), ylim=(bottom, top))
    magnified.tick_params(labelsize="small")
    axes[1].indicate_inset_zoom(magnified)
    axes[1].set(xlabel="pull on dev", ylabel="push on dev")
    axes[1].legend()
    save_figure(figure, file)


@styled
def draw_combiners(store: Store, file: Path) -> None:
    """Draw the gain over models of one task by method, and that of surgery by mean cosine."""
    evidence = evidence_of(content_of("combiners"), store)
    gains = {
        row: [100 * gain for gain in evidence.gains(row).values()]
        for row in ("sum", "linear", *OF_LOSSES, *OF_GRADIENTS)
    }
    figure = Figure(figsize=(9.0, 4.6))
    axes: Sequence[Axes] = figure.subplots(1, 2)
    for place, values in enumerate(gains.values()):
        if len(values) < 3:
            return
        axes[0].errorbar(fmean(values), place, xerr=half_width(values), fmt="o", color="C0")
    axes[0].set_yticks(range(len(gains)), [*gains])
    axes[0].invert_yaxis()
    axes[0].set(xlabel="gain over models of one task (%)")
    for pair in ("natural", *PAIRS):
        start = "" if pair == "natural" else f"{pair}-"
        cosines = evidence.scores(f"{start}sum", "all layers")
        for number, name in enumerate(OF_PAIRS):
            terms = [f"{start}{name} mean"], [f"{start}sum mean"]
            found = Difference(*terms, evidence).values
            if len(found) < 3 or not cosines:
                return
            axes[1].errorbar(
                fmean(cosines.values()) + 0.004 * (number - 1),  # side by side
                fmean(found),
                yerr=half_width(found),
                fmt=MARKERS[number],
                color=f"C{number}",
                label=name if pair == "natural" else None,
            )
        axes[1].text(fmean(cosines.values()), 0, pair, rotation=90, va="bottom")
    axes[1].set(
        xlabel="mean cosine between the tasks' gradients",
        ylabel="points above the sum, mean of tasks",
    )
    axes[1].legend()
    save_figure(figure, file)


def front_points(store: Store, method: str) -> Mapping[str, tuple[float, float]]:
    """Return the means of pull and push by preference for pull; none if a run is missing."""
    found = {}
    for (own, first), row in FRONT.items():
        both = [store.values(row, "sst2", "dev", term).values() for term in ("pull", "push")]
        if own == method and all(both):
            found[f"{first:g}"] = (fmean(both[0]), fmean(both[1]))
    return found if len(found) * 2 == len(FRONT) else {}


def mean_line(
    axis: Axes, points: Mapping[float, Sequence[float]], title: str, shift: float = 0.0
) -> None:
    """Plot the mean of the values at each x, with their standard deviation as error bars.

    `shift` moves the line to the right, so that the error bars of several lines stand side by side.
    """
    number = len(axis.containers)
    several = [np.asarray(values, np.float64) for values in points.values()]
    spread = [values.std(ddof=1) if len(values) > 1 else 0.0 for values in several]
    axis.errorbar(
        [x + shift for x in points],
        [values.mean() for values in several],
        np.array(spread) if any(spread) else None,
        marker=MARKERS[number % len(MARKERS)],
        label=title,
    )
