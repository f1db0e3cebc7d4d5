"""SuperConText's Figures 4 and 5 as numbers, and what section V says of them."""

from __future__ import annotations

from studies.claims import Table, by_seed, claims_table
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
    """Section V: each setting's two ends, and SuperLoss against cross-entropy at every shape."""
    found: dict[str, list[float]] = {}
    for what, points in SWEEPS.items():
        better, other = (points[0], points[-1]) if what in LOWER else (points[-1], points[0])
        ends = (swept(results, what, value, "superloss") for value in (better, other))
        found[f"{what}: {better:g} - {other:g}"] = by_seed(*ends)
    title = "SuperLoss - Cross-entropy, by layers and units"
    found[title] = []
    for what in ("layers", "units"):
        for value in SWEEPS[what]:
            both = (swept(results, what, value, loss) for loss in ("superloss", "ce"))
            found[title] += by_seed(*both)
    return claims_table(found)
