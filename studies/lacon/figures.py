"""Figures of LaCon that are lines over a number: classes, shots, settings."""

from __future__ import annotations

from studies.lacon.experiments import (
    CLASS_METHODS,
    CLASS_TASKS,
    CURVE,
    FEW_METHODS,
    IMBALANCED,
    METHODS,
    RATIOS,
    SHOTS,
    SWEEPS,
    SWEPT,
)
from studies.lacon.protocol_tables import swept
from studies.lacon.results import Results
from studies.lines import Line, draw_lines


def draw_figures(results: Results) -> None:
    """Figures 2, 3, 5 and 6."""
    cells = results.cells
    lines: dict[str, tuple[str, dict[str, Line]]] = {
        "few-shot": (
            "examples a class",
            {
                title: {s: results.of(cells.few_shot(CURVE, s, m)) for s in SHOTS}
                for m, title in FEW_METHODS.items()
            },
        )
    }
    for task in IMBALANCED:
        lines[f"imbalance-{task}"] = (
            "most frequent class / rarest",
            {
                METHODS[m]: {r: results.of(cells.imbalanced(task, r, m)) for r in RATIOS}
                for m in ("ce", "lacon")
            },
        )
    for task, counts in CLASS_TASKS.items():
        lines[f"classes-{task}"] = (
            "classes",
            {
                METHODS[m]: {c: results.of(cells.first_classes(task, c, m)) for c in counts}
                for m in CLASS_METHODS
            },
        )
    for what, (_, points) in SWEEPS.items():
        lines[f"sweep-{what}"] = (
            what,
            {task: {v: swept(results, task, what, v) for v in points} for task in SWEPT},
        )
    for name, (label, several) in lines.items():
        draw_lines(several, results.folder / f"{name}.png", label, "test")
