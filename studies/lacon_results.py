"""Test figures of LaCon's kept cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from minbert.json_files import read_json
from studies.lacon import METRICS, Experiments
from studies.seeds import SeedCell, kept, values


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

    def ranks(self, task: str) -> dict[str, float]:
        """Effective ranks of the test embeddings of a task that was drawn, by method."""
        file = ranks_file(self.folder, task)
        return read_json(file) if file.exists() else {}


def ranks_file(results: Path, task: str) -> Path:
    return results / f"ranks-{task}.json"
