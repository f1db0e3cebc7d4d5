"""Tables of the LaCon study: the paper's figures and those of the stored cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from reports.cells import read_cell
from reports.tables import Table, beside
from studies.claims import beside_paper, points_text, select_seeds, shared_seeds, shown
from studies.fairness import correlates, exceeds
from studies.lacon import cells as lacon
from studies.results import Cell, Results
from studies.study import printed

PRINTED = printed("lacon")
Figures = Mapping[int, float]


@dataclass(frozen=True)
class Scores:
    """Test figures of the stored cells by seed, in each task's metric."""

    cells: lacon.Experiments
    stored: Results

    def of(self, one: Cell) -> dict[int, float]:
        (task,) = one.config.tasks
        return self.stored.values(one, "test", task, metric_name(task))

    def f1_by_class(self, one: Cell) -> tuple[dict[int, float], dict[int, float]]:
        """Return F1 of the classes with the fewest and the most training examples, by seed."""
        minor, major = {}, {}
        figures = self.stored.values(one, "f1_by_class")
        for seed, counts in self.stored.values(one, "training_counts").items():
            if seed in figures:
                minor[seed] = figures[seed][int(np.argmin(counts))]
                major[seed] = figures[seed][int(np.argmax(counts))]
        return minor, major

    def most_frequent(self, one: Cell) -> float | None:
        """Return the score of always predicting test's most frequent class; None without runs."""
        counts = self.counts([one], "test_counts")
        if not counts:
            return None
        metric = lacon.METRICS.get(next(iter(one.config.tasks)))
        return always(max(counts) / sum(counts), len(counts), metric)

    def counts(self, cells: Iterable[Cell], which: str) -> list[int]:
        """Return the number of examples per class in the first run of these cells."""
        runs = (counts for one in cells for counts in self.stored.values(one, which).values())
        return next(runs, [])

    def main(self, task: str) -> list[Cell]:
        """Return the cells of Tables 2 and 7 of a task."""
        return [self.cells.main(task, method) for method in self.cells.methods()]

    def learnt(self, cells: Iterable[Cell]) -> set[str]:
        """Return the tasks of which a method has learnt something, by its score or correlation."""
        return {
            next(iter(one.config.tasks))
            for one in cells
            if correlates(self.stored, one)
            or (
                (share := self.most_frequent(one)) is not None
                and exceeds(self.of(one).values(), share)
            )
        }

    def ranks(self, task: str) -> dict[str, float]:
        """Return the effective ranks of a mapped task's test embeddings, by method."""
        file = ranks_file(self.stored.folder, task)
        return read_cell(file) if file.exists() else {}


def metric_name(task: str) -> str:
    """Return the name of the metric in the tables of a task."""
    return lacon.METRICS.get(task, "accuracy")


def always(share: float, classes: int, metric: str | None) -> float:
    """Return the score of always predicting one of `classes` with this share of examples."""
    if metric == "matthews":
        return 0.0
    return 2 * share / (1 + share) / classes if metric == "macro_f1" else share


def ranks_file(results: Path, task: str) -> Path:
    return results / f"ranks-{task}.json"


def printed_main(task: str) -> Mapping[str, Sequence[float]]:
    """Return the paper's figures of a task by method."""
    if task in PRINTED["main"]:
        return dict(zip(lacon.METHODS, PRINTED["main"][task], strict=True))
    found = PRINTED["further"].get(task)
    return dict(zip(("ce", "lacon", "lacon-fusion"), found, strict=True)) if found else {}


def printed_best_rival(task: str) -> Sequence[float] | None:
    """Return the paper's best rival, computed from its figures per rival or as printed."""
    known: dict[str, Any] = PRINTED["best_rival"]
    if task in PRINTED["main"]:
        return max(PRINTED["main"][task][: len(lacon.RIVALS)], key=lambda pair: pair[0])
    return known.get(task)


def measured(results: Scores) -> list[str]:
    """Return the tasks with a stored main cell."""
    return [task for task in lacon.TASKS if any(map(results.of, results.main(task)))]


def best_rival(results: Scores, task: str) -> Figures:
    """Return the rival figures with the highest mean over the seeds that all rivals share."""
    every = [results.of(results.cells.main(task, rival)) for rival in lacon.RIVALS]
    alike = [select_seeds(found, shared_seeds(every)) for found in every]
    return max(alike, key=lambda found: fmean(found.values()) if found else 0.0)


def data_table(results: Scores) -> Table:
    """Return Table 1: numbers of examples in the paper and here."""
    rows = []
    for task in measured(results):
        main = results.main(task)
        ours = [
            f"{sum(counts):,}" if (counts := results.counts(main, f"{split}_counts")) else ""
            for split in ("training", "test")
        ]
        rows.append([task, *PRINTED["data"].get(task, ("", "")), *ours])
    return ["", "paper: train", "test", "ours: train", "test"], rows


def main_table(results: Scores) -> Table:
    """Return Tables 2 and 7: one row per method, one column per task."""
    cells = results.cells
    tasks = measured(results)
    rows = [
        [
            title,
            *(
                beside_paper(printed_main(task).get(method), results.of(cells.main(task, method)))
                for task in tasks
            ),
        ]
        for method, title in cells.methods().items()
    ]
    best = [beside_paper(printed_best_rival(task), best_rival(results, task)) for task in tasks]
    rows.append(["the best of the five rivals", *best])
    several = [map(results.most_frequent, results.main(task)) for task in tasks]
    shares = [next((share for share in one if share is not None), None) for one in several]
    texts = ["" if share is None else f"{100 * share:.1f}" for share in shares]
    rows.append(["always test's most frequent class", *texts])
    return ["", *tasks], rows


def ablation_table(results: Scores) -> Table:
    """Return Tables 3 and 6."""
    titles = {"lacon": "LaCon-vanilla"} | {v: title for v, (title, _) in lacon.ABLATIONS.items()}
    titles |= {"projection": "CE behind the projection head"}
    rows = []
    for variant, title in titles.items():
        cells = [
            results.cells.main(task, "lacon")
            if variant == "lacon"
            else results.cells.ablation(task, variant)
            for task in lacon.ABLATED
        ]
        found = [
            beside_paper(PRINTED["ablation"][variant][task], results.of(one))
            for task, one in zip(lacon.ABLATED, cells, strict=True)
        ]
        rows.append([title, *found])
    return ["", *lacon.ABLATED], rows


def ranks_table(results: Scores) -> Table:
    """Return the effective ranks, which summarise the singular values of appendix A.3."""
    found = {task: ranks for task in lacon.MAPPED if (ranks := results.ranks(task))}
    titles = list(dict.fromkeys(title for ranks in found.values() for title in ranks))
    rows = [[task, *(f"{ranks[title]:.1f}" for title in titles)] for task, ranks in found.items()]
    return ["", *titles], rows


def few_shot_table(results: Scores) -> Table:
    """Return Table 4 (20 examples per class) and one task's other numbers of Figure 2."""
    rows = []
    for task, shots in [(name, n) for name in lacon.FEW_TASKS for n in lacon.shots_of(name)]:
        known = PRINTED["few_shot"].get(task, ()) if shots == lacon.FEW else ()
        paper = dict(zip(("ce", "lacon"), known, strict=False))
        found = {m: results.of(results.cells.few_shot(task, shots, m)) for m in lacon.FEW_METHODS}
        if any(found.values()):
            cells = [
                f"{paper[m]:.1f} / {shown(f.values())}" if m in paper else shown(f.values())
                for m, f in found.items()
            ]
            rows.append([task, str(shots), *cells])
    return ["", "a class", *lacon.FEW_METHODS.values()], rows


def imbalance_table(results: Scores) -> Table:
    """Return Figure 3 as numbers, one column per ratio."""
    rows = []
    for task in lacon.IMBALANCED:
        for method in ("ce", "lacon"):
            cells = [results.cells.imbalanced(task, ratio, method) for ratio in lacon.RATIOS]
            rows.append(
                [task, lacon.METHODS[method], *(shown(results.of(o).values()) for o in cells)]
            )
    return ["", "", *(f"{ratio}" for ratio in lacon.RATIOS)], rows


def by_class_table(results: Scores) -> Table:
    """Return Table 5: F1 of the minority and the majority class at a ratio of 10."""
    rows = []
    for task in lacon.IMBALANCED:
        for place, method in enumerate(("ce", "lacon")):
            found = results.f1_by_class(results.cells.imbalanced(task, 10, method))
            by_class = PRINTED["by_class"]
            paper = by_class[task][place] if task in by_class else (None, None)
            pairs = [
                beside("" if p is None else f"{p:.1f}", shown(o.values()))
                for p, o in zip(paper, found, strict=True)
            ]
            rows.append([task, lacon.METHODS[method], *pairs])
    return ["", "", "minority", "majority"], rows


def classes_table(results: Scores) -> Table:
    """Return Figure 6 as numbers."""
    rows = []
    for task, counts in lacon.CLASS_TASKS.items():
        for method in lacon.CLASS_METHODS:
            cells = {count: results.cells.first_classes(task, count, method) for count in counts}
            found = {count: results.of(one) for count, one in cells.items()}
            if text := points_text(found):
                rows.append([task, lacon.METHODS[method], text])
    return ["", "", "accuracy by number of classes"], rows


def swept(results: Scores, task: str, what: str, value: float) -> dict[int, float]:
    return select_seeds(results.of(results.cells.sweep(task, what, value)), lacon.SWEEP_SEEDS)


def sweep_table(results: Scores) -> Table:
    """Return Figure 5 as numbers."""
    rows = [
        [what, task, text]
        for what, (_, points) in lacon.SWEEPS.items()
        for task in lacon.SWEPT
        if (text := points_text({value: swept(results, task, what, value) for value in points}))
    ]
    return ["", "", "test accuracy of LaCon-vanilla"], rows
