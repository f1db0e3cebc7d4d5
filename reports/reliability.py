"""Reliability diagrams of calibrated runs: how often predictions are right at each confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from multitask.calibration import read_calibration
from reports.figures import MARKERS, SOFT, heading, new_figure, seeds_text, styled, wrapped
from reports.scored_systems import ScoredSystem
from tasks.calibration import Reliability, reliability, temperature_scaled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = dict[str, Reliability]  # before and after temperature scaling


def reliability_tables(one: ScoredSystem, task: str) -> tuple[Tables, list[int]] | None:
    """Return the tables over all calibrated runs of a system together, and these runs' seeds.

    None for a task without probabilities, or without a calibrated run.
    """
    calibrator = one.system.task(task).kind.calibrator
    parts, seeds = [], []
    for seed in one.seeds(task):
        found = read_calibration(one.system.cells[task, seed]).get(task)
        scores = one.scores[task, seed]
        if found is None or found.temperature is None or scores.targets is None:
            continue
        assert calibrator is not None
        assert calibrator.decisions is not None
        plain, targets = calibrator.decisions(scores.values, scores.targets)
        parts.append((plain, temperature_scaled(plain, found.temperature), targets))
        seeds.append(seed)
    if not parts:
        return None
    before, after, targets = (np.concatenate(several) for several in zip(*parts, strict=True))
    return {"before": reliability(before, targets), "after": reliability(after, targets)}, seeds


@styled
def reliability_diagram(one: ScoredSystem, task: str) -> Figure | None:
    """Draw accuracy by confidence, before and after scaling (Guo et al., 2017, Figure 1)."""
    if (found := reliability_tables(one, task)) is None:
        return None
    tables, seeds = found
    figure, axis = new_figure(4.1, 3.6)
    axis.plot([0, 1], [0, 1], color=SOFT, linewidth=1)
    for number, (title, table) in enumerate(tables.items()):
        filled = table.counts > 0
        axis.plot(
            table.confidence[filled],
            table.accuracy[filled],
            ("--", "-")[number],
            marker=MARKERS[number],
            label=f"{title}: error {table.error:.3f}",
        )
    axis.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
    several = "sums of " if len(seeds) > 1 else ""
    count = int(tables["before"].counts.sum()) // len(seeds)
    text = seeds_text(set(seeds) & set(one.real_seeds(task)))
    detail = f"before and after temperature scaling\nn = {count:,}; {several}{text}"
    heading(axis, f"{task}: {wrapped(one.system.name, 36)}", detail)
    axis.legend(loc="upper left")
    return figure


def reliability_text(one: ScoredSystem, task: str) -> str:
    """Return the content of a reliability diagram for screen readers."""
    if (found := reliability_tables(one, task)) is None:
        return ""
    lines = [
        f"{title} scaling, calibration error {table.error:.3f}: "
        + ", ".join(
            f"{accuracy:.2f} at {confidence:.2f}"
            for count, confidence, accuracy in zip(*table, strict=True)
            if count
        )
        for title, table in found[0].items()
    ]
    return f"Accuracy at each confidence on {task}, {one.system.name}; " + "; ".join(lines)
