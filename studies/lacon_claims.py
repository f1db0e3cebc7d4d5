"""Whether LaCon's claims hold here, from the cells that are kept."""

from __future__ import annotations

from studies.claims import Table, claims_table, differences
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

RIVALS = ("ce", "leam", "lsan", "cl", "scl")
OURS = ("lacon", "lacon-fusion")


def claims(results: Results) -> Table:
    """LaCon against each rival; in few-shot learning and with imbalance; each of its parts."""
    cells = results.cells
    main = {m: [cells.main(task, m) for task in TASKS] for m in METHODS}
    found = {
        f"{METHODS[own]} - {METHODS[rival]}": differences(results.of, main[own], main[rival])
        for own in OURS
        for rival in RIVALS
    }
    found["LaCon-fusion - LaCon-vanilla"] = differences(
        results.of, main["lacon-fusion"], main["lacon"]
    )
    few = {m: [cells.few_shot(task, 20, m) for task in FEW_TASKS] for m in FEW_METHODS}
    found["few-shot: LaCon - CE"] = differences(results.of, few["lacon"], few["ce"])
    found["few-shot: labels begin at names - at random"] = differences(
        results.of, few["names"], few["lacon"]
    )
    uneven = {
        m: [cells.imbalanced(t, r, m) for t in IMBALANCED for r in RATIOS[1:]]
        for m in ("ce", "lacon")
    }
    found["imbalance: LaCon - CE"] = differences(results.of, uneven["lacon"], uneven["ce"])
    whole = [cells.main(task, "lacon") for task in ABLATED]
    for variant in ("single-head", "no-icl", "no-lcl", "no-ler", "no-projection"):
        less = [cells.ablation(task, variant) for task in ABLATED]
        what = ABLATIONS[variant][0].replace("- ", "LaCon without ")
        found[f"LaCon - {what}"] = differences(results.of, whole, less)
    return claims_table(found)
