"""The tables of LaCon beside ours, from the cells that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from reports.tables import beside
from studies.claims import Table
from studies.lacon import paper as paper
from studies.lacon.experiments import (
    ABLATED,
    ABLATIONS,
    AT_MEAN,
    MAPPED,
    METHODS,
    RIVALS,
    TASKS,
)
from studies.lacon.results import Results
from studies.seeds import of_seeds, shared_seeds, shown

Figures = Mapping[int, float]


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


def measured(results: Results) -> list[str]:
    """Tasks of which a main cell is kept."""
    every = {task: [results.cells.main(task, m) for m in METHODS | AT_MEAN] for task in TASKS}
    return [task for task, several in every.items() if any(map(results.of, several))]


def best_rival(results: Results, task: str) -> Figures:
    """Of the rivals the one with the highest mean over the seeds that all of them have."""
    every = [results.of(results.cells.main(task, rival)) for rival in RIVALS]
    alike = [of_seeds(found, shared_seeds(every)) for found in every]
    return max(alike, key=lambda found: fmean(found.values()) if found else 0.0)


def data_table(results: Results) -> Table:
    """Table 1: how many examples the paper has and we have."""
    rows = []
    for task in measured(results):
        ours = [
            f"{sum(counts):,}" if (counts := results.counts(task, f"{split}_counts")) else ""
            for split in ("training", "test")
        ]
        rows.append([task, *paper.DATA.get(task, ("", "")), *ours])
    return ["", "paper: train", "test", "ours: train", "test"], rows


def main_table(results: Results) -> Table:
    """Tables 2 and 7: a row a method, a column a task."""
    cells = results.cells
    tasks = measured(results)
    rows = [
        [
            title,
            *(
                both(printed_main(task).get(method), results.of(cells.main(task, method)))
                for task in tasks
            ),
        ]
        for method, title in (METHODS | AT_MEAN).items()
    ]
    best = [both(paper.BEST_RIVAL.get(task), best_rival(results, task)) for task in tasks]
    rows.append(["the best of the five rivals", *best])
    always = [results.most_frequent(task) for task in tasks]
    shares = ["" if share is None else f"{100 * share:.1f}" for share in always]
    rows.append(["always test's most frequent class", *shares])
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


def ranks_table(results: Results) -> Table:
    """The appendix's singular values (A.3) as one number: the exponential of their entropy."""
    found = {task: ranks for task in MAPPED if (ranks := results.ranks(task))}
    titles = list(dict.fromkeys(title for ranks in found.values() for title in ranks))
    rows = [[task, *(f"{ranks[title]:.1f}" for title in titles)] for task, ranks in found.items()]
    return ["", *titles], rows
