"""Test figures of LaCon's kept cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reports.cells import read_cell
from studies.lacon.experiments import AT_MEAN, METHODS, METRICS, Experiments
from studies.seeds import SeedCell, values


class Results:
    """Test figures of the kept cells by seed, each task's in its metric."""

    def __init__(self, cells: Experiments, folder: Path) -> None:
        self.cells, self.folder = cells, folder

    def of(self, one: SeedCell) -> dict[int, float]:
        (task,) = one.config.tasks
        return values(one, self.folder, "test", task, METRICS.get(task, "accuracy"))

    def f1_by_class(self, one: SeedCell) -> tuple[dict[int, float], dict[int, float]]:
        """Of the class with the fewest and with the most training examples, by seed."""
        minor, major = {}, {}
        figures = values(one, self.folder, "f1_by_class")
        for seed, counts in values(one, self.folder, "training_counts").items():
            if seed in figures:
                minor[seed] = figures[seed][int(np.argmin(counts))]
                major[seed] = figures[seed][int(np.argmax(counts))]
        return minor, major

    def most_frequent(self, task: str) -> float | None:
        """What always saying test's most frequent class has; None where no cell tells."""
        counts = self.counts(task, "test_counts")
        if not counts:
            return None
        return always(max(counts) / sum(counts), len(counts), METRICS.get(task))

    def counts(self, task: str, which: str) -> list[int]:
        """How many examples of each class a main run has; of training those of its first seed."""
        for method in METHODS | AT_MEAN:
            for counts in values(self.cells.main(task, method), self.folder, which).values():
                return counts
        return []

    def ranks(self, task: str) -> dict[str, float]:
        """Effective ranks of the test embeddings of a task that was drawn, by method."""
        file = ranks_file(self.folder, task)
        return read_cell(file) if file.exists() else {}


def always(share: float, classes: int, metric: str | None) -> float:
    """The score of saying one class of `classes` that has this share of the examples."""
    if metric == "matthews":
        return 0.0
    return 2 * share / (1 + share) / classes if metric == "macro_f1" else share


def ranks_file(results: Path, task: str) -> Path:
    return results / f"ranks-{task}.json"
