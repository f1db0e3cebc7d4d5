"""SuperConText's Figures 4 and 5 as numbers, and what section V says of them."""

from __future__ import annotations

from studies.claims import Table, between, by_seed, claims_table, means_by_seed
from studies.seeds import of_seeds, shown
from studies.supercontext.experiments import (
    LOSSES,
    SWEEP_SEEDS,
    SWEEPS,
    SWEPT,
    sweep_points,
)
from studies.supercontext.results import Results

LOWER = ("tau",)  # of which the paper finds the smaller ones better


def sweep_table(results: Results) -> Table:
    """Figures 4, 5a and 5b as numbers."""
    found: dict[tuple[str, str], list[str]] = {}
    for what, value, loss in sweep_points():
        if cell := shown(swept(results, what, value, loss).values()):
            found.setdefault((what, LOSSES[loss]), []).append(f"{value:g}: {cell}")
    rows = [[*key, ", ".join(cells)] for key, cells in found.items()]
    return ["", "", f"{SWEPT}, dev accuracy of the linear evaluation"], rows


def swept(results: Results, what: str, value: float, loss: str) -> dict[int, float]:
    """On dev; of the sweep's seeds alone."""
    return of_seeds(results.of(results.cells.sweep(what, value, loss), split="dev"), SWEEP_SEEDS)


def sweep_claims(results: Results) -> Table:
    """Section V: each setting's two ends, and SuperLoss against cross-entropy over shapes."""
    found: dict[str, list[float]] = {}
    for what, points in SWEEPS.items():
        better, other = (points[0], points[-1]) if what in LOWER else (points[-1], points[0])
        ends = (swept(results, what, value, "superloss") for value in (better, other))
        found[f"{what}: {better:g} - {other:g}"] = by_seed(*ends)
    shapes = [(what, value) for what in ("layers", "units") for value in SWEEPS[what]]
    found["SuperLoss - Cross-entropy, mean over layers and units"] = means_by_seed(
        between(swept(results, *shape, "superloss"), swept(results, *shape, "ce"))
        for shape in shapes
    )
    return claims_table(found)
