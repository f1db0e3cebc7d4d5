"""What the kept cells of SCL-MOO measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from studies.claims import differences
from studies.scl_moo.experiments import SHOTS, SWEEP_SEEDS, TASKS, Experiments
from studies.seeds import SeedCell, of_seeds, values


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

    def pairs(self, method: str, other: str) -> tuple[list[float], list[float]]:
        """Differences of two methods over (task, seed) pairs: of few-shot learning, of all data.

        A pair of few-shot learning is the mean over the numbers of examples, and counts where all
        are there that any pair has.
        """
        few: dict[tuple[str, int], dict[int, float]] = {}
        for task in TASKS:
            for shots in SHOTS:
                mine, theirs = (self.few_shot(task, shots, name) for name in (method, other))
                for seed in sorted(mine.keys() & theirs.keys()):
                    few.setdefault((task, seed), {})[shots] = mine[seed] - theirs[seed]
        whole = {shots for several in few.values() for shots in several}
        means = [float(np.mean(list(v.values()))) for v in few.values() if v.keys() == whole]
        first, second = ([self.cells.full(t, name) for t in TASKS] for name in (method, other))
        return means, differences(self.test, first, second)

    def sweep(
        self, setting: str, value: float, method: str, split: str = "dev"
    ) -> dict[int, float]:
        """On dev, as the paper has it; of the sweep's seeds alone."""
        found = self.test(self.cells.sweep(setting, value, method), split)
        return of_seeds(found, SWEEP_SEEDS)
