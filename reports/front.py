"""Pareto fronts of sweeps: distances from rays, hypervolumes, and a figure.

Compare sweeps in one figure and table: python -m reports.front FOLDER FOLDER --output FIGURE
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from common.entry_point import start
from common.errors import UserError
from multitask.combiners.epo import non_uniformity
from reports.cells import read_cell
from reports.figures import SOFT, blank_figure, heading, save_figure, styled
from reports.tables import text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Front:
    """The n points of one method: losses (n, m) for preferences (n, m).

    Losses are divided by `reference` (m,), which is also the reference point of the hypervolume.
    A preference r stands for the ray of relative losses along 1 / r.
    """

    method: str
    objectives: tuple[str, ...]
    preferences: np.ndarray
    losses: np.ndarray
    reference: np.ndarray

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Front:
        return cls(
            content["method"],
            tuple(content["objectives"]),
            *(np.array(content[key]) for key in ("preferences", "losses", "reference")),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all fields, the distance of each point from its ray, and the hypervolume."""
        return {
            "method": self.method,
            "objectives": list(self.objectives),
            "preferences": self.preferences.tolist(),
            "losses": self.losses.tolist(),
            "reference": self.reference.tolist(),
            "non_uniformity": self.distances().tolist(),
            "hypervolume": self.hypervolume(),
        }

    @property
    def relative(self) -> np.ndarray:
        """Losses divided by their reference: (n, m)."""
        return self.losses / self.reference

    def distances(self) -> np.ndarray:
        """Compute the non-uniformity mu (n,) of each point with respect to its preference."""
        pairs = zip(self.relative, self.preferences, strict=True)
        return np.array([non_uniformity(losses, wish) for losses, wish in pairs])

    def hypervolume(self) -> float:
        """Compute the volume between points and reference, as a share of that of zero losses."""
        import moocore

        return float(moocore.hypervolume(self.relative, ref=np.ones_like(self.reference)))


def reachable(fronts: Sequence[Front]) -> np.ndarray:
    """Return a mask (n,) of the common preferences whose ray is between the outermost points.

    The outermost points are those of all `fronts`, so pass all fronts that are compared. With
    more than two objectives, all rays count as reachable.
    """
    first = fronts[0]
    if len(first.objectives) != 2:
        return np.ones(len(first.preferences), bool)
    points = np.concatenate([front.relative for front in fronts])
    angles = np.arctan2(points[:, 1], points[:, 0])
    rays = np.arctan2(1 / first.preferences[:, 1], 1 / first.preferences[:, 0])
    return (rays >= angles.min() - 1e-9) & (rays <= angles.max() + 1e-9)


def front_table(fronts: Sequence[Front]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: mean distance from reachable rays and hypervolume per method."""
    inside = reachable(fronts)
    rows = [
        [
            front.method,
            f"{inside.sum()} of {len(inside)}",
            distance_text(front, inside).removeprefix("mean μ "),
            f"{front.hypervolume():.4f}",
        ]
        for front in fronts
    ]
    return ["method", "reachable rays", "mean non-uniformity", "hypervolume"], rows


def distance_text(front: Front, inside: np.ndarray) -> str:
    """Format the mean distance of the points from their reachable rays."""
    return f"mean μ {front.distances()[inside].mean():.4f}" if inside.any() else "no ray reachable"


def label(front: Front, objective: int) -> str:
    """Return the label of an axis."""
    name = f"loss of {front.objectives[objective]}"
    return name if front.reference[objective] == 1 else f"{name} / before training"


def draw_points(axis: Axes, front: Front, x: int, y: int, marker: str = "o") -> None:
    """Draw the points of two objectives and the rays of their preferences, in the same colours."""
    from matplotlib import colormaps

    colors = colormaps["cividis"](np.linspace(0, 0.9, len(front.losses)))  # in order
    for wish, color in zip(front.preferences, colors, strict=True):
        ends = 1 / wish[[x, y]]
        axis.axline((0, 0), (ends[0], ends[1]), ls="--", color=color, linewidth=0.8, zorder=2)
    first, second = front.relative[:, [x, y]].T
    axis.scatter(first, second, c=colors, s=30, zorder=3, clip_on=False, marker=marker)
    axis.set_xlabel(label(front, x))
    axis.set_ylabel(label(front, y))


@styled
def draw_fronts(fronts: Sequence[Front], file: Path, curve: np.ndarray | None = None) -> None:
    """Draw a panel per method and pair of objectives: points, their rays, and `curve` behind."""
    inside = reachable(fronts)
    pairs = list(combinations(range(len(fronts[0].objectives)), 2))
    figure = blank_figure(4.1 * len(fronts), 3.8 * len(pairs))
    axes = figure.subplots(len(pairs), len(fronts), squeeze=False, sharex="row", sharey="row")
    for row, (x, y) in zip(axes, pairs, strict=True):
        limit = 1.08 * np.max([front.relative[:, [x, y]].max(0) for front in fronts], axis=0)
        for axis, front in zip(row, fronts, strict=True):
            if curve is not None:
                axis.plot(curve[:, x], curve[:, y], color=SOFT, linewidth=1.5, zorder=1)
            draw_points(axis, front, x, y)
            axis.set(xlim=(0, limit[0]), ylim=(0, limit[1]))
            rays = f"{len(front.losses)} preferences, one run each; {distance_text(front, inside)}"
            heading(axis, front.method, rays)
    save_figure(figure, file)


def read_fronts(folders: Sequence[Path]) -> list[Front]:
    """Read the fronts of finished sweeps; raise UserError if they cannot be compared."""
    files = [folder / "front.json" for folder in folders]
    fronts = [Front.from_json(read_cell(file)) for file in files]
    first = fronts[0]
    for folder, front in zip(folders, fronts, strict=True):
        for what in ("objectives", "preferences", "reference"):
            expected, found = (np.asarray(getattr(f, what)).tolist() for f in (first, front))
            if found != expected:
                raise UserError(
                    f"{folder / 'front.json'}: expected the {what} of {folders[0]}, {expected}; "
                    f"found {found}"
                )
    return fronts


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m reports.front", description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of finished sweeps")
    parser.add_argument("--output", type=Path, required=True, help="figure to write, .png or .pdf")
    args = parser.parse_args()
    fronts = read_fronts(args.folders)
    draw_fronts(fronts, args.output)
    print(text_table(*front_table(fronts)))


if __name__ == "__main__":
    start("python -m reports.front", main)
