"""Training examples drawn class by class, for LaCon's protocols; the dev file is test, or the
published test file where it has labels.

Zhang et al. (2022), sections 3.1, 4.1, 4.2 and 4.5. What is drawn depends on the seed, test does
not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.labelled_files import Source
from tasks.readers import Examples, Limit
from tasks.text_files import DataError

KEPT_FOR_DEV = 0.05  # of what is drawn, where dev is a part of it
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True)
class Capped:
    """At most `shots` examples a class, of which a twentieth is dev, one at least.

    `test` is the split of the source that has test's labels.
    """

    source: Source
    shots: int
    classes: int
    seed: int
    test: str = "dev"
    splits: tuple[str, ...] = SPLITS

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "test":
            return self.source.read(folder, self.test)
        examples = self.source.read(folder, "train")
        parts: dict[str, list[np.ndarray]] = {"train": [], "dev": []}
        for several in by_class(examples, self.classes, self.seed):
            rows = several[: self.shots]
            held = max(1, round(KEPT_FOR_DEV * len(rows))) if len(rows) > 1 else 0
            parts["dev"].append(rows[:held])
            parts["train"].append(rows[held:])
        rows = np.sort(np.concatenate(parts[split]))
        if not len(rows):
            where = self.where(folder, split)
            raise DataError(
                f"{where}: expected two examples of a class or more to part, found none"
            )
        found = examples.at(rows)
        return found.some(limit) if split == "train" else replace(found, blank_labels=0)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, self.test if split == "test" else "train")


@dataclass(frozen=True)
class Even:
    """`shots` examples a class, and as many others for dev.

    With a `ratio` above 1 the most frequent class has so many times `shots`, the rarest `shots`,
    those between what lies between on a geometric scale (Cao et al., 2019).
    """

    source: Source
    shots: int
    classes: int
    seed: int
    ratio: float = 1.0
    test: str = "dev"
    splits: tuple[str, ...] = SPLITS
    names: tuple[str, ...] = ()  # of the classes

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "test":
            return self.source.read(folder, self.test)
        examples = self.source.read(folder, "train")
        drawn = by_class(examples, self.classes, self.seed)
        rows = []
        for label, (several, wanted) in enumerate(zip(drawn, self.counts(drawn), strict=True)):
            if len(several) < 2 * wanted:
                where, name = self.where(folder, split), (self.names or range(self.classes))[label]
                raise DataError(
                    f"{where}: expected {2 * wanted} examples of class {name}, half of them for "
                    f"dev, found {len(several)}"
                )
            rows.append(several[:wanted] if split == "train" else several[wanted : 2 * wanted])
        found = examples.at(np.sort(np.concatenate(rows)))
        return found.some(limit) if split == "train" else replace(found, blank_labels=0)

    def counts(self, drawn: list[np.ndarray]) -> list[int]:
        """Examples of each class."""
        order = np.argsort([len(rows) for rows in drawn], kind="stable")  # the rarest first
        steps = np.empty(len(drawn))
        steps[order] = np.linspace(0, 1, len(drawn))
        return [round(self.shots * float(self.ratio**step)) for step in steps]

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, self.test if split == "test" else "train")


def by_class(examples: Examples, classes: int, seed: int) -> list[np.ndarray]:
    """The rows of each class, shuffled."""
    draw = np.random.default_rng(seed)
    return [draw.permutation(np.flatnonzero(examples.targets == c)) for c in range(classes)]
