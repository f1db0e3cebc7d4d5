"""Figures of a run's telemetry: cosines of gradients, and weights of objectives over the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from multitask.telemetry import read_steps
from reports.figures import heading, new_figure, styled, wrapped
from reports.store import StoredRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 60  # per curve over steps; each is the mean of nearby steps


def telemetry_of(run: StoredRun) -> list[dict[str, Any]]:
    """Return the logged steps of a run, or none if it has no telemetry."""
    file = run.folder / "telemetry.jsonl"
    return list(read_steps(file)) if file.exists() else []


@styled
def conflict_map(run: StoredRun) -> Figure | None:
    """Draw the mean cosine of gradients, by pair of objectives and part of the encoder."""
    found: dict[str, dict[str, list[float]]] = {}
    steps = 0
    for line in telemetry_of(run):
        steps += "layers" in line
        for layer, pairs in line.get("layers", {}).items():
            for pair, cosine in pairs.items():
                found.setdefault(layer, {}).setdefault(pair, []).append(cosine)
    if not found:
        return None
    pairs = sorted({pair for several in found.values() for pair in several})
    means = np.array(
        [[np.mean(several.get(pair, [np.nan])) for pair in pairs] for several in found.values()]
    )
    figure, axis = new_figure(max(4.1, 1.8 + 0.75 * len(pairs)), 1.7 + 0.32 * len(found))
    limit = max(0.05, float(np.nanmax(np.abs(means))))
    image = axis.imshow(means, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
    axis.set_xticks(range(len(pairs)), [pair.replace(" and ", "\nand ") for pair in pairs])
    axis.set_yticks(range(len(found)), list(found))
    axis.grid(visible=False)
    for (row, column), value in np.ndenumerate(means):
        colour = "white" if abs(value) > 0.6 * limit else "black"
        axis.text(column, row, f"{value:z.2f}", ha="center", va="center", fontsize=9, color=colour)
    figure.colorbar(image, ax=axis, label="mean cosine").outline.set_visible(False)
    detail = f"mean of {steps:,} steps, seed {run.config.get('seed')}\nbelow 0: in conflict"
    heading(axis, "Cosines of the tasks' gradients", detail)
    return figure


@styled
def weights_over_time(run: StoredRun) -> Figure | None:
    """Draw the combiner's weights over the steps; return None if all weights are 1."""
    points: dict[str, list[tuple[int, float]]] = {}
    for line in telemetry_of(run):
        if len(line["weights"]) > 1:
            for name, weight in line["weights"].items():
                points.setdefault(name, []).append((line["step"], weight))
    if not any(weight != 1 for several in points.values() for _, weight in several):
        return None
    figure, axis = new_figure(4.1, 3)
    for name, several in points.items():
        chunks = np.array_split(np.array(several), min(POINTS, len(several)))
        means = np.array([chunk.mean(0) for chunk in chunks])
        axis.plot(*means.T, label=wrapped(name))
    axis.set(xlabel="step", ylabel="weight")
    heading(
        axis, "Weights of the objectives", f"means of nearby steps, seed {run.config.get('seed')}"
    )
    axis.legend()
    return figure
