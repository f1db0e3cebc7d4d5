"""The tables and figures of SCL-MOO beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reports.drawing import new_figure, save_figure
from reports.tables import markdown_table
from studies.claims import READING, Table, claims_table
from studies.scl_moo import (
    DATA_PAPER,
    FEW_SHOT_PAPER,
    FULL,
    FULL_PAPER,
    GRID,
    METHODS,
    SHOTS,
    SWEEP_SEEDS,
    SWEEPS,
    TASKS,
    Experiments,
    swept_methods,
)
from studies.seeds import SeedCell, kept, shown, values
from tasks import build_task, data_folder

OURS = ("ls", "epo")
AGAINST = ("ce", "scl")


class Results:
    """Test accuracies of the kept cells by seed, however far the study is."""

    def __init__(self, cells: Experiments, folder: Path) -> None:
        self.cells, self.folder = cells, folder

    def test(self, one: SeedCell, split: str = "test") -> dict[int, float]:
        (task,) = one.config.tasks
        return values(one, self.folder, split, task, "accuracy")

    def few_shot(self, task: str, shots: int, method: str) -> dict[int, float]:
        return self.test(self.cells.few_shot(task, shots, method))

    def full(self, task: str, method: str) -> dict[int, float]:
        return self.test(self.cells.full(task, method))

    def sweep(self, setting: str, value: float, method: str) -> dict[int, float]:
        """On dev, as the paper has it; of the sweep's seeds alone."""
        found = self.test(self.cells.sweep(setting, value, method), "dev")
        return {seed: value for seed, value in found.items() if seed in SWEEP_SEEDS}


def beside(paper: tuple[float, float] | None, ours: Mapping[int, float]) -> str:
    """`72.1 ± 5.4 / 61.0 ± 3.1`."""
    first = f"{paper[0]:.1f} ± {paper[1]:.1f}" if paper else ""
    found = shown(ours.values())
    return f"{first} / {found}" if first or found else ""


def few_shot_table(results: Results) -> Table:
    """Table 2 and more: a row a method and number of examples, a column a task."""
    rows = []
    for shots in SHOTS:
        for method, title in METHODS.items():
            cells = [
                beside(
                    FEW_SHOT_PAPER.get(task, {}).get(shots, {}).get(method),
                    results.few_shot(task, shots, method),
                )
                for task in TASKS
            ]
            rows.append([title, str(shots), *cells])
    return ["", "N", *TASKS], rows


def full_table(results: Results) -> Table:
    """Table 3."""
    rows = [
        [
            title,
            *(beside(FULL_PAPER[task][method], results.full(task, method)) for task in FULL),
            f"{np.mean([FULL_PAPER[task][method][0] for task in FULL]):.2f}",
        ]
        for method, title in METHODS.items()
    ]
    return ["", *FULL, "the paper's mean"], rows


def differences(results: Results, method: str, other: str) -> list[float]:
    """Of few-shot learning over (task, seed) pairs: the mean over the N that both have."""
    found: dict[tuple[str, int], list[float]] = {}
    for task in TASKS:
        for shots in SHOTS:
            mine, theirs = (results.few_shot(task, shots, name) for name in (method, other))
            for seed in sorted(mine.keys() & theirs.keys()):
                found.setdefault((task, seed), []).append(mine[seed] - theirs[seed])
    return [float(np.mean(several)) for several in found.values()]


def data_table(results: Results) -> Table:
    """Table 1, of the files there are; the paper's test sets are the leaderboard's."""
    rows = []
    for task in TASKS:
        one, folder = build_task(task), data_folder(results.cells.base.data)
        if all(Path(one.source.where(folder, split)).exists() for split in ("train", "dev")):
            train, dev = (len(one.read(folder, split)) for split in ("train", "dev"))
            classes = str(one.kind.classes)
            rows.append([task, *DATA_PAPER[task], f"{train:,}", f"{dev:,}", classes])
    return ["", "paper: train", "test", "ours: train", "dev", "classes"], rows


def significance_table(results: Results) -> Table:
    """LS and EPO against CE and CE + SCL."""
    return claims_table(
        {
            f"{METHODS[method]} - {METHODS[other]}": differences(results, method, other)
            for method in OURS
            for other in AGAINST
        }
    )


def status_table(results: Results) -> Table:
    """What EPO did in its steps, and the weights it gave to pull and push, by task."""
    rows = []
    for task in TASKS:
        counts: dict[str, int] = {}
        weights: list[tuple[float, float]] = []
        for one in results.cells.every():
            if one.config.objective == "epo" and one.config.tasks == (task,):
                for found in kept(one, results.folder).values():
                    for status, steps in found["combiner_steps"].items():
                        counts[status] = counts.get(status, 0) + steps
                    given = [found["mean_weights"][f"{task}/{name}"] for name in ("pull", "push")]
                    weights.append((given[0] / sum(given), given[1] / sum(given)))
        total = sum(counts.values())
        ranked = sorted(counts.items(), key=lambda item: -item[1])
        said = ", ".join(f"{status} {100 * n / total:.0f} %" for status, n in ranked)
        if total:
            pull, push = np.mean(weights, axis=0)
            rows.append([task, said, f"{pull:.2f} / {push:.2f}"])
    return ["", "EPO's steps", "mean weight of pull / push"], rows


def sweep_table(results: Results) -> Table:
    """Figure 5 as numbers: dev accuracy on SST-2 with 50 examples."""
    rows = []
    for setting, method in swept_methods():
        cells = [shown(results.sweep(setting, value, method).values()) for value in GRID]
        rows.append([SWEEPS[setting], METHODS[method], *cells])
    return ["", "", *(f"{value:g}" for value in GRID)], rows


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


def report(results: Results, command: str, notes: str) -> str:
    """results/scl_moo.md."""
    cells = results.cells.every()
    done = sum(len(kept(one, results.folder)) >= len(one.seeds) for one in cells)
    parts = [
        "# SCL-MOO, beside ours",
        f"`{command}`",
        f"{done} of {len(cells)} cells are finished. Every cell: the paper's figure (RoBERTa base) "
        "/ ours, test accuracy in per cent, mean ± standard deviation (seeds).",
        notes,
        "## Data (Table 1)",
        markdown_table(*data_table(results)),
        "## Few-shot (Table 2, and three tasks more)",
        markdown_table(*few_shot_table(results)),
        "## Do LS and EPO beat the baselines?",
        markdown_table(*significance_table(results)),
        f"{READING} A pair is the mean over N; methods share a seed's examples. LS and EPO have "
        "batches of as many examples of each class (Algorithm 1), CE and CE + SCL random ones: a "
        "difference may be the batches'.",
        "## All data (Table 3)",
        markdown_table(*full_table(results)),
        "## What EPO did",
        markdown_table(*status_table(results)),
        "At a vertex one of the two has no say: the ray of the preference is out of reach there.",
        "## Figure 5: SST-2 dev accuracy with 50 examples",
        markdown_table(*sweep_table(results)),
    ]
    return "\n\n".join(parts) + "\n"
