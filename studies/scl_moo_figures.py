"""SCL-MOO's figures of accuracies: over the number of examples, and over each setting."""

from __future__ import annotations

import numpy as np

from reports.drawing import new_figure, save_figure
from studies.scl_moo import GRID, METHODS, SHOTS, SWEEPS, swept_methods
from studies.scl_moo_results import Results


def draw_sweeps(results: Results) -> None:
    """Figure 5: a figure a setting, a line a method."""
    for setting, name in SWEEPS.items():
        figure, axis = new_figure(4.2, 3.2)
        for method in [one for where, one in swept_methods() if where == setting]:
            found = {v: results.sweep(setting, v, method) for v in GRID}
            points = [(v, 100 * np.mean(list(s.values()))) for v, s in found.items() if s]
            if points:
                axis.plot(*zip(*points, strict=True), marker="o", label=METHODS[method])
        if axis.lines:
            axis.set(xlabel=name, ylabel="SST-2 dev accuracy, 50 examples")
            axis.legend(fontsize=7)
            save_figure(figure, results.folder / f"sweep-{name}.png")


def draw_shots(results: Results) -> None:
    """Figure 1: SST-2 test accuracy over the number of examples."""
    figure, axis = new_figure(4.2, 3.2)
    for method, title in METHODS.items():
        found = {shots: results.few_shot("sst2", shots, method) for shots in SHOTS}
        points = [(n, 100 * np.mean(list(s.values()))) for n, s in found.items() if s]
        if points:
            axis.plot(*zip(*points, strict=True), marker="o", label=title)
    if axis.lines:
        axis.set(xlabel="labelled examples", ylabel="SST-2 test accuracy", xticks=list(SHOTS))
        axis.legend(fontsize=7)
        save_figure(figure, results.folder / "shots.png")
