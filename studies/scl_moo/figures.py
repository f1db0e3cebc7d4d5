"""SCL-MOO's figures of accuracies: over the number of examples, and over each setting."""

from __future__ import annotations

from studies.lines import draw_lines
from studies.scl_moo.experiments import GRID, METHODS, SHOTS, SWEEPS, swept_methods
from studies.scl_moo.results import Results


def draw_sweeps(results: Results) -> None:
    """Figure 5: a figure a setting, a line a method."""
    for setting, name in SWEEPS.items():
        lines = {
            METHODS[method]: {v: results.sweep(setting, v, method) for v in GRID}
            for where, method in swept_methods()
            if where == setting
        }
        file = results.folder / f"sweep-{name}.png"
        draw_lines(lines, file, name, "SST-2 dev accuracy, 50 examples")


def draw_shots(results: Results) -> None:
    """Figure 1: SST-2 test accuracy over the number of examples."""
    lines = {
        title: {float(shots): results.few_shot("sst2", shots, method) for shots in SHOTS}
        for method, title in METHODS.items()
    }
    file = results.folder / "shots.png"
    draw_lines(lines, file, "labelled examples", "SST-2 test accuracy", xticks=SHOTS)
