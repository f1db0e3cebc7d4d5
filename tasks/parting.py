"""Train, dev and test of data that are published without a dev file, or in one file alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.labelled_files import LabelledFiles, Source
from tasks.readers import Examples
from tasks.sampled import FirstClasses
from tasks.text_files import DataError

DEV, MOST = 0.1, 10_000  # share of the training file, and examples at most


@dataclass(frozen=True)
class Parted:
    """Dev is a tenth of the training file; test a file of its own, or a share of the same file.

    Always the same examples, whatever the seed of a run. The file is gone through twice, once to
    count, and only the rows of the split are held.
    """

    source: LabelledFiles
    test: float | None = None
    splits: tuple[str, ...] = ("train", "dev", "test")

    def read(self, folder: Path, split: str, limit: int | None = None) -> Examples:
        if split == "test" and self.test is None:
            return self.source.read(folder, "test", limit)
        count = self.source.count(folder, "train")
        order = np.random.default_rng(0).permutation(count)
        tested = max(1, round(self.test * count)) if self.test else 0
        held = tested + min(MOST, max(1, round(DEV * count)))
        if held >= count:
            where = self.source.where(folder, "train")
            raise DataError(f"{where}: expected more examples to part, found {count}")
        rows = {"test": order[:tested], "dev": order[tested:held], "train": order[held:][:limit]}
        found = self.source.at(folder, "train", np.sort(rows[split]))
        return found if split == "train" else replace(found, blank_labels=0)  # told once

    def where(self, folder: Path, split: str) -> str:
        own = split == "test" and self.test is None
        return self.source.where(folder, "test" if own else "train")


@dataclass(frozen=True)
class Joined:
    """The texts of an example as one, such as a title and what follows it."""

    source: Source

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def read(self, folder: Path, split: str, limit: int | None = None) -> Examples:
        examples = self.source.read(folder, split, limit)
        texts = [" ".join(filter(None, several)) for several in zip(*examples.texts, strict=True)]
        return replace(examples, texts=(texts,))

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)


def is_parted(source: Source) -> bool:
    """Whether dev and test with labels are held out already."""
    while isinstance(source, Joined | FirstClasses):
        source = source.source
    return isinstance(source, Parted)
