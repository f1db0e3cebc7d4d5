"""Train, dev and test of data that are published without a dev file, or in one file alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.labelled_files import LabelledFiles
from tasks.readers import Examples, Limit, amount
from tasks.text_files import DataError

DEV, MOST = 0.1, 10_000  # share of the training file, and examples at most


@dataclass(frozen=True)
class Parted:
    """Dev is a tenth of the training file; test a file of its own, or a share of the same file.

    Always the same examples, whatever the seed of a run; those of the same texts stay together. The
    file is gone through twice, and only the rows of the split are held.
    """

    source: LabelledFiles
    test: float | None = None
    splits: tuple[str, ...] = ("train", "dev", "test")

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "test" and self.test is None:
            return self.source.read(folder, "test", limit)
        known = self.source.hashes(folder, "train")
        count, where = len(known), self.source.where(folder, "train")
        order = np.random.default_rng(0).permutation(count)
        tested = max(1, round(self.test * count)) if self.test else 0
        held = min(MOST, max(1, round(DEV * count)))
        if tested + held >= count:
            raise DataError(f"{where}: expected more examples to part, found {count}")
        rows = dict(zip(("train", "test", "dev"), dealt(known, order, (tested, held)), strict=True))
        if not len(rows[split]):
            raise DataError(f"{where}: expected different texts to part, found each too often")
        own = rows[split]
        wanted = own[: amount(len(own), limit)] if split == "train" else own
        found = self.source.at(folder, "train", np.sort(wanted))
        if split != "train":
            return replace(found, blank_labels=0)  # reported once
        return found if len(wanted) == len(own) else replace(found, drawn_from=len(own))

    def where(self, folder: Path, split: str) -> str:
        own = split == "test" and self.test is None
        return self.source.where(folder, "test" if own else "train")


def dealt(known: np.ndarray, order: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Rows in this order: what is left, then parts of at most these sizes.

    Rows of the same hash are in one part, or all left where they do not fit.
    """
    _, group, counts = np.unique(known, return_inverse=True, return_counts=True)
    part = np.zeros(len(counts), np.int64)
    for number, size in enumerate(sizes, 1):
        room = size
        for row in order:
            if not room:
                break
            if not part[group[row]] and counts[group[row]] <= room:
                part[group[row]] = number
                room -= counts[group[row]]
    return [order[part[group[order]] == number] for number in range(len(sizes) + 1)]
