"""Accuracies of SuperConText's kept cells."""

from __future__ import annotations

from pathlib import Path

from studies.seeds import SeedCell, values
from studies.supercontext.experiments import Experiments


class Results:
    """Accuracies of the kept cells by seed, however far the study is."""

    def __init__(self, cells: Experiments, folder: Path) -> None:
        self.cells, self.folder = cells, folder

    def of(self, one: SeedCell, how: str = "linear", split: str = "test") -> dict[int, float]:
        (task,) = one.config.tasks
        return values(one, self.folder, how, split, task, "accuracy")
