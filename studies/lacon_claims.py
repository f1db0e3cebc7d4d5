"""Whether LaCon's claims hold here, from the cells that are kept."""

from __future__ import annotations

from studies.claims import Table, claims_table
from studies.lacon import (
    ABLATED,
    ABLATIONS,
    FEW_METHODS,
    FEW_TASKS,
    IMBALANCED,
    METHODS,
    RATIOS,
    TASKS,
)
from studies.lacon_results import Results
from studies.seeds import SeedCell

RIVALS = ("ce", "leam", "lsan", "cl", "scl")
OURS = ("lacon", "lacon-fusion")


def differences(results: Results, first: list[SeedCell], second: list[SeedCell]) -> list[float]:
    """Over (task, seed) pairs that both have."""
    found = []
    for one, other in zip(first, second, strict=True):
        mine, theirs = results.of(one), results.of(other)
        found += [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]
    return found


def claims(results: Results) -> Table:
    """LaCon against each rival; in few-shot learning and with imbalance; each of its parts."""
    cells = results.cells
    main = {m: [cells.main(task, m) for task in TASKS] for m in METHODS}
    found = {
        f"{METHODS[own]} - {METHODS[rival]}": differences(results, main[own], main[rival])
        for own in OURS
        for rival in RIVALS
    }
    found["LaCon-fusion - LaCon-vanilla"] = differences(
        results, main["lacon-fusion"], main["lacon"]
    )
    few = {m: [cells.few_shot(task, 20, m) for task in FEW_TASKS] for m in FEW_METHODS}
    found["few-shot: LaCon - CE"] = differences(results, few["lacon"], few["ce"])
    found["few-shot: labels begin at names - at random"] = differences(
        results, few["names"], few["lacon"]
    )
    uneven = {
        m: [cells.imbalanced(t, r, m) for t in IMBALANCED for r in RATIOS[1:]]
        for m in ("ce", "lacon")
    }
    found["imbalance: LaCon - CE"] = differences(results, uneven["lacon"], uneven["ce"])
    whole = [cells.main(task, "lacon") for task in ABLATED]
    for variant in ("single-head", "no-icl", "no-lcl", "no-ler", "no-projection"):
        less = [cells.ablation(task, variant) for task in ABLATED]
        what = ABLATIONS[variant][0].replace("- ", "LaCon without ")
        found[f"LaCon - {what}"] = differences(results, whole, less)
    return claims_table(found)
