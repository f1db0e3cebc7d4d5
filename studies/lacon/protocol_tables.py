"""LaCon's tables of few examples, imbalance, numbers of classes and settings, beside ours."""

from __future__ import annotations

from reports.tables import beside
from studies.claims import Table
from studies.lacon import paper as paper
from studies.lacon.experiments import (
    CLASS_METHODS,
    CLASS_TASKS,
    CURVE,
    FEW_METHODS,
    FEW_TASKS,
    IMBALANCED,
    METHODS,
    RATIOS,
    SHOTS,
    SWEEP_SEEDS,
    SWEEPS,
    SWEPT,
)
from studies.lacon.results import Results
from studies.seeds import of_seeds, shown


def few_shot_table(results: Results) -> Table:
    """Table 4: 20 examples a class; Figure 2's further numbers of one task."""
    rows = []
    for task, shots in [(t, s) for t in FEW_TASKS for s in (SHOTS if t == CURVE else (20,))]:
        known = paper.FEW_SHOT.get(task, ()) if shots == 20 else ()
        printed = dict(zip(("ce", "lacon"), known, strict=False))
        found = {m: results.of(results.cells.few_shot(task, shots, m)) for m in FEW_METHODS}
        if any(found.values()):
            cells = [
                f"{printed[m]:.1f} / {shown(f.values())}" if m in printed else shown(f.values())
                for m, f in found.items()
            ]
            rows.append([task, str(shots), *cells])
    return ["", "a class", *FEW_METHODS.values()], rows


def imbalance_table(results: Results) -> Table:
    """Figure 3 as numbers, a column a ratio."""
    rows = []
    for task in IMBALANCED:
        for method in ("ce", "lacon"):
            cells = [results.cells.imbalanced(task, ratio, method) for ratio in RATIOS]
            rows.append([task, METHODS[method], *(shown(results.of(o).values()) for o in cells)])
    return ["", "", *(f"{ratio}" for ratio in RATIOS)], rows


def by_class_table(results: Results) -> Table:
    """Table 5: F1 of the rarer and the more frequent class at a ratio of 10."""
    rows = []
    for task in IMBALANCED:
        for place, method in enumerate(("ce", "lacon")):
            found = results.f1_by_class(results.cells.imbalanced(task, 10, method))
            printed = paper.BY_CLASS[task][place] if task in paper.BY_CLASS else (None, None)
            pairs = [
                beside("" if p is None else f"{p:.1f}", shown(o.values()))
                for p, o in zip(printed, found, strict=True)
            ]
            rows.append([task, METHODS[method], *pairs])
    return ["", "", "minority", "majority"], rows


def classes_table(results: Results) -> Table:
    """Figure 6 as numbers."""
    rows = []
    for task, counts in CLASS_TASKS.items():
        for method in CLASS_METHODS:
            found = {
                count: shown(results.of(results.cells.first_classes(task, count, method)).values())
                for count in counts
            }
            if any(found.values()):
                cells = ", ".join(f"{count}: {cell}" for count, cell in found.items() if cell)
                rows.append([task, METHODS[method], cells])
    return ["", "", "accuracy by number of classes"], rows


def swept(results: Results, task: str, what: str, value: float) -> dict[int, float]:
    return of_seeds(results.of(results.cells.sweep(task, what, value)), SWEEP_SEEDS)


def sweep_table(results: Results) -> Table:
    """Figure 5 as numbers."""
    rows = []
    for what, (_, points) in SWEEPS.items():
        for task in SWEPT:
            found = {value: shown(swept(results, task, what, value).values()) for value in points}
            if any(found.values()):
                cells = ", ".join(f"{v:g}: {cell}" for v, cell in found.items() if cell)
                rows.append([what, task, cells])
    return ["", "", "test accuracy of LaCon-vanilla"], rows
