"""The tables of LaCon beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping

from reports.tables import beside, markdown_table
from studies import lacon_paper as paper
from studies.claims import READING, Table
from studies.lacon import (
    ABLATED,
    ABLATIONS,
    CLASS_METHODS,
    CLASS_TASKS,
    FEW_METHODS,
    FEW_TASKS,
    IMBALANCED,
    MAPPED,
    METHODS,
    METRICS,
    RATIOS,
    SEEDS,
    SWEEP_SEEDS,
    SWEEPS,
    SWEPT,
    TASKS,
)
from studies.lacon_claims import claims
from studies.lacon_results import Results
from studies.seeds import how_far, of_seeds, shown

Figures = Mapping[int, float]


OWN_NUMBERS = (
    "LaCon: temperature 0.1, six heads, weight 0.5 of the regulariser; CE + SCL: weight 0.9 and "
    "temperature 0.3, as its source has them most often; CE + CL: weight 0.13 and temperature 0.1, "
    "after ConSERT; one learning rate for all. CE, CE + CL, CE + SCL and LaCon-vanilla look at "
    "[CLS], the others at all tokens: with an encoder that was trained to average, that may be "
    "their gain."
)


def both(printed: tuple[float, float] | None, ours: Figures) -> str:
    """`71.4 ± 0.7 / 60.1 ± 1.2 (6)`."""
    first = f"{printed[0]:.1f} ± {printed[1]:.1f}" if printed else ""
    return beside(first, shown(ours.values()))


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
                both(printed_main(task).get(method), results.of(cells.main(task, method)))
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
            both(paper.ABLATION[variant][task], results.of(one))
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
    return of_seeds(results.of(results.cells.sweep(what, value)), SWEEP_SEEDS)


def sweep_table(results: Results) -> Table:
    """Figure 5 as numbers."""
    rows = []
    for what, (_, points) in SWEEPS.items():
        found = {value: shown(swept(results, what, value).values()) for value in points}
        if any(found.values()):
            rows.append([what, ", ".join(f"{v:g}: {cell}" for v, cell in found.items() if cell)])
    return ["", f"{SWEPT} test accuracy of LaCon-vanilla"], rows


def ranks_table(results: Results) -> Table:
    """The appendix's singular values (A.3) as one number: the exponential of their entropy."""
    found = {task: ranks for task in MAPPED if (ranks := results.ranks(task))}
    titles = list(dict.fromkeys(title for ranks in found.values() for title in ranks))
    rows = [[task, *(f"{ranks[title]:.1f}" for title in titles)] for task, ranks in found.items()]
    return ["", *titles], rows


def report(results: Results, command: str, notes: str) -> str:
    """results/lacon.md."""
    metrics = ", ".join(f"{task} {metric}" for task, metric in METRICS.items())
    parts = [
        "# LaCon, beside ours",
        f"`{command}`",
        f"{how_far(results.cells.every(), results.folder)} "
        "Every cell: the paper's figure (BERT base) / "
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
        f"## Effective rank of the test embeddings, seed {SEEDS[0]} (appendix A.3)",
        "Of what the encoder gives, and of what LaCon matches with labels:",
        markdown_table(*ranks_table(results)),
    ]
    return "\n\n".join(parts) + "\n"
