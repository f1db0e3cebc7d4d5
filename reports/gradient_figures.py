"""Figures of a run's telemetry: cosines of gradients, and weights of objectives over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from multitask.loop.telemetry import read_steps
from multitask.runs import Run
from reports.figures import heading, new_figure, styled, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 60  # per curve over steps; each is the mean of nearby steps


def telemetry_of(run: Run) -> list[dict[str, Any]]:
    """Return the logged steps of a run, or none if it has no telemetry."""
    file = run.folder / "telemetry.jsonl"
    return list(read_steps(file)) if file.exists() else []


@dataclass(frozen=True)
class PartCosines:
    """Mean cosines (P, K) of the gradients of K pairs of objectives, in P parts of the encoder."""

    parts: tuple[str, ...]
    pairs: tuple[str, ...]
    means: np.ndarray
    detail: str  # number of steps, seed

    @classmethod
    def of_run(cls, run: Run) -> PartCosines | None:
        """Compute them from a run's telemetry; return None if it has none by part."""
        found: dict[str, dict[str, list[float]]] = {}
        steps = 0
        for line in telemetry_of(run):
            steps += "layers" in line
            for part, by_pair in line.get("layers", {}).items():
                for pair, cosine in by_pair.items():
                    found.setdefault(part, {}).setdefault(pair, []).append(cosine)
        if not found:
            return None
        pairs = tuple(sorted({pair for several in found.values() for pair in several}))
        means = [
            [np.mean(several.get(pair, [np.nan])) for pair in pairs] for several in found.values()
        ]
        detail = f"mean of {steps:,} steps, seed {run.settings.get('seed')}"
        return cls(tuple(found), pairs, np.array(means), detail)

    def draw(self, axis: Axes) -> None:
        """Draw them as a map, red where the gradients are in conflict."""
        limit = max(0.05, float(np.nanmax(np.abs(self.means))))
        axis.set_xticks(range(len(self.pairs)), pair_labels(self.pairs))
        axis.set_yticks(range(len(self.parts)), self.parts)

        image = axis.imshow(self.means, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
        axis.grid(visible=False)
        for row, column in np.argwhere(np.isfinite(self.means)):
            mean = self.means[row, column]
            colour = "white" if abs(mean) > 0.6 * limit else "black"
            text = f"{mean:z.2f}"
            axis.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
        axis.figure.colorbar(image, ax=axis, label="mean cosine").outline.set_visible(False)
        detail = f"{self.detail}\nbelow 0: in conflict"
        heading(axis, "Cosines of gradients", detail)


def pair_labels(pairs: Sequence[str]) -> list[str]:
    """Return the pairs in two lines, without the task if all objectives are of the same one."""
    objectives = [one for pair in pairs for one in pair.split(" and ")]
    tasks = {one.partition("/")[0] if "/" in one else "" for one in objectives}
    prefix = f"{tasks.pop()}/" if len(tasks) == 1 else ""
    short = [pair.replace(prefix, "") if prefix != "/" else pair for pair in pairs]
    return [pair.replace(" and ", "\nand ").replace("_", " ") for pair in short]


@styled
def conflict_map(run: Run) -> Figure | None:
    """Draw the mean cosine of gradients, by pair of objectives and part of the encoder."""
    cosines = PartCosines.of_run(run)
    if cosines is None:
        return None
    width = max(4.1, 1.8 + 0.75 * len(cosines.pairs))
    figure, axis = new_figure(width, 1.7 + 0.32 * len(cosines.parts))
    cosines.draw(axis)
    return figure


@styled
def weights_over_time(run: Run) -> Figure | None:
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
        axis, "Weights of the objectives", f"means of nearby steps, seed {run.settings.get('seed')}"
    )
    axis.legend()
    return figure
