"""The tables and figures of LaCon beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from reports.drawing import new_figure, save_figure
from reports.tables import markdown_table
from studies import lacon_paper as paper
from studies.claims import READING, Table, claims_table
from studies.lacon import (
    ABLATED,
    ABLATIONS,
    CLASS_METHODS,
    CLASS_TASKS,
    CURVE,
    FEW_METHODS,
    FEW_TASKS,
    IMBALANCED,
    METHODS,
    METRICS,
    RATIOS,
    SHOTS,
    SWEEP_SEEDS,
    SWEEPS,
    SWEPT,
    TASKS,
    Experiments,
)
from studies.seeds import SeedCell, kept, shown, values

RIVALS = ("ce", "leam", "lsan", "cl", "scl")
OURS = ("lacon", "lacon-fusion")
Figures = Mapping[int, float]


OWN_NUMBERS = (
    "LaCon: temperature 0.1, six heads, weight 0.5 of the regulariser; CE + SCL: weight 0.9 and "
    "temperature 0.3, as its source has them most often; CE + CL: weight 0.13 and temperature 0.1, "
    "after ConSERT; one learning rate for all. CE, CE + CL, CE + SCL and LaCon-vanilla look at "
    "[CLS], the others at all tokens: with an encoder that was trained to average, that may be "
    "their gain."
)


class Results:
    """Test figures of the kept cells by seed, each task's in its metric."""

    def __init__(self, cells: Experiments, folder: Path) -> None:
        self.cells, self.folder = cells, folder

    def of(self, one: SeedCell) -> dict[int, float]:
        (task,) = one.config.tasks
        return values(one, self.folder, "test", task, METRICS.get(task, "accuracy"))

    def f1_by_class(self, one: SeedCell) -> tuple[float, float] | None:
        """Of the class with the fewest and with the most training examples, mean of the seeds."""
        pairs = []
        for found in kept(one, self.folder).values():
            counts, figures = found["training_counts"], found["f1_by_class"]
            pairs.append((figures[int(np.argmin(counts))], figures[int(np.argmax(counts))]))
        if not pairs:
            return None
        minor, major = np.mean(pairs, axis=0)
        return float(minor), float(major)


def beside(printed: tuple[float, float] | None, ours: Figures) -> str:
    """`71.4 ± 0.7 / 60.1 ± 1.2 (6)`."""
    found = shown(ours.values())
    first = f"{printed[0]:.1f} ± {printed[1]:.1f}" if printed else ""
    return f"{first} / {found}" if first or found else ""


def printed_main(task: str) -> dict[str, tuple[float, float]]:
    """The paper's figures of a task by method."""
    if task in paper.MAIN:
        return dict(zip(paper.METHODS, paper.MAIN[task], strict=True))
    found = paper.FURTHER.get(task)
    return dict(zip(("ce", "lacon", "lacon-fusion"), found, strict=True)) if found else {}


def main_table(results: Results) -> Table:
    """Tables 2 and 7: a row a method, a column a task."""
    cells = results.cells
    tasks = [task for task in TASKS if any(results.of(cells.main(task, m)) for m in METHODS)]
    rows = [
        [
            title,
            *(
                beside(printed_main(task).get(method), results.of(cells.main(task, method)))
                for task in tasks
            ),
        ]
        for method, title in METHODS.items()
    ]
    return ["", *tasks], rows


def ablation_table(results: Results) -> Table:
    """Tables 3 and 6."""
    titles = {"lacon": "LaCon-vanilla"} | {v: title for v, (title, _) in ABLATIONS.items()}
    titles |= {"projection": "CE behind the projection head"}
    rows = []
    for variant, title in titles.items():
        cells = [
            results.cells.main(task, "lacon")
            if variant == "lacon"
            else results.cells.ablation(task, variant)
            for task in ABLATED
        ]
        found = [
            beside(paper.ABLATION[variant][task], results.of(one))
            for task, one in zip(ABLATED, cells, strict=True)
        ]
        rows.append([title, *found])
    return ["", *ABLATED], rows


def few_shot_table(results: Results) -> Table:
    """Table 4: 20 examples a class."""
    rows = []
    for task in FEW_TASKS:
        printed = dict(zip(("ce", "lacon"), paper.FEW_SHOT.get(task, ()), strict=False))
        found = {m: results.of(results.cells.few_shot(task, 20, m)) for m in FEW_METHODS}
        if any(found.values()):
            cells = [
                f"{printed[m]:.1f} / {shown(f.values())}" if m in printed else shown(f.values())
                for m, f in found.items()
            ]
            rows.append([task, *cells])
    return ["", *FEW_METHODS.values()], rows


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
            own = [f"{100 * figure:.1f}" for figure in found] if found else ["", ""]
            printed = paper.BY_CLASS[task][place]
            pairs = [f"{p:.1f} / {o}" for p, o in zip(printed, own, strict=True)]
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


def swept(results: Results, what: str, value: float) -> dict[int, float]:
    found = results.of(results.cells.sweep(what, value))
    return {seed: figure for seed, figure in found.items() if seed in SWEEP_SEEDS}


def sweep_table(results: Results) -> Table:
    """Figure 5 as numbers."""
    rows = []
    for what, (_, points) in SWEEPS.items():
        found = {value: shown(swept(results, what, value).values()) for value in points}
        if any(found.values()):
            rows.append([what, ", ".join(f"{v:g}: {cell}" for v, cell in found.items() if cell)])
    return ["", f"{SWEPT} test accuracy of LaCon-vanilla"], rows


def draw_lines(results: Results) -> None:
    """Figures 2, 3, 5 and 6."""
    cells = results.cells
    lines: dict[str, tuple[str, dict[str, dict[float, Figures]]]] = {
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
        lines[f"sweep-{what}"] = (what, {SWEPT: {v: swept(results, what, v) for v in points}})
    for name, (label, several) in lines.items():
        figure, axis = new_figure(4.2, 3.2)
        for title, found in several.items():
            line = [(x, 100 * np.mean(list(s.values()))) for x, s in found.items() if s]
            if line:
                axis.plot(*zip(*line, strict=True), marker="o", label=title)
        if axis.lines:
            axis.set(xlabel=label, ylabel="test")
            axis.legend(fontsize=7)
            save_figure(figure, results.folder / f"{name}.png")


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


def report(results: Results, command: str, notes: str) -> str:
    """results/lacon.md."""
    cells = results.cells.every()
    done = sum(len(kept(one, results.folder)) >= len(one.seeds) for one in cells)
    metrics = ", ".join(f"{task} {metric}" for task, metric in METRICS.items())
    parts = [
        "# LaCon, beside ours",
        f"`{command}`",
        f"{done} of {len(cells)} cells are finished. Every cell: the paper's figure (BERT base) / "
        f"ours, on test, in per cent, mean ± standard deviation (seeds): {metrics}, the others "
        "accuracy.",
        notes,
        OWN_NUMBERS,
        "## Seven methods (Tables 2 and 7)",
        markdown_table(*main_table(results)),
        "## Do the claims hold?",
        READING,
        markdown_table(*claims(results)),
        "## Without a part (Tables 3 and 6)",
        markdown_table(*ablation_table(results)),
        "## Few-shot: 20 examples a class (Table 4)",
        markdown_table(*few_shot_table(results)),
        "## Imbalance: 32 examples of the rarest class (Figure 3)",
        markdown_table(*imbalance_table(results)),
        "F1 of each class at a ratio of 10 (Table 5):",
        markdown_table(*by_class_table(results)),
        "## Number of classes (Figure 6)",
        markdown_table(*classes_table(results)),
        "## Temperature, heads, weight of the regulariser (Figure 5)",
        markdown_table(*sweep_table(results)),
        "Nothing was chosen by these.",
    ]
    return "\n\n".join(parts) + "\n"
