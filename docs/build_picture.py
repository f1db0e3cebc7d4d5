"""Draws the README's picture from the files in results/front: python -m docs.build_picture

With --run RUN, the cosines of that run's gradients are stored there first.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from common.entry_point import start
from common.errors import UserError
from multitask.storage.stored_config import without_paths
from multitask.storage.stored_runs import read_run
from reports.cells import read_cell, write_cell
from reports.figures import blank_figure, heading, save_figure, styled
from reports.front import draw_points, read_fronts
from reports.gradient_figures import PartCosines

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "front"
PICTURE = ROOT / "docs" / "picture.png"


def store_cosines(run: Path) -> None:
    """Write the mean cosines of a run's gradients, and the run's configuration."""
    stored = read_run(run)
    cosines = PartCosines.of_run(stored)
    if cosines is None:
        raise UserError(f"{run}: expected a run with cosines of gradients, found none")
    write_cell(
        RESULTS / "cosines.json", cosines.to_json() | {"config": without_paths(stored.config)}
    )


@styled
def draw(file: Path) -> None:
    """Draw the conflict map beside the fronts of EPO and of weighted sums."""
    figure = blank_figure(8.6, 3.9)
    left, right = figure.subplots(1, 2, width_ratios=(1.05, 1))
    PartCosines.from_json(read_cell(RESULTS / "cosines.json")).draw(left)
    epo, linear = read_fronts([RESULTS / "epo", RESULTS / "linear"])
    draw_points(right, linear, 0, 1, marker="X")
    draw_points(right, epo, 0, 1)
    right.set(xlim=(0, 1.05), ylim=(0, 1.7))
    detail = "five preferences, dashed, one run each;\ndots: EPO, crosses: weighted sums"
    heading(right, "Losses of sentiment and similarity", detail)
    save_figure(figure, file)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.build_picture", description=__doc__)
    parser.add_argument("--run", type=Path, help="finished run with telemetry.jsonl")
    args = parser.parse_args()
    if args.run:
        store_cosines(args.run)
    draw(PICTURE)


if __name__ == "__main__":
    start("python -m docs.build_picture", main)
