"""What the kept cells of SCL-MOO measured."""

from __future__ import annotations

from pathlib import Path

from studies.scl_moo import SWEEP_SEEDS, Experiments
from studies.seeds import SeedCell, values


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
