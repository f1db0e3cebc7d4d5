"""Train, dev and test derived from a task's files: changed, filtered or split examples.

Protocols, with which users choose a split, are in `protocols.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.labelled_files import LabelledFiles, Source
from tasks.readers import Examples, Limit, amount, normalise_text, text_hash
from tasks.tables import DataError

DEV, MOST_DEV = 0.1, 10_000  # share of the training file, and most examples

# (examples of the source's split, the new split, its files for messages) -> its examples.
Make = Callable[[Examples, str, str], Examples]


@dataclass(frozen=True)
class DerivedSource:
    """Splits that a function derives from another source's; `origin` maps each to one of these."""

    source: Source
    make: Make
    origin: Mapping[str, str]

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.origin)

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        examples = self.source.read(folder, self.origin[split])
        return self.make(examples, split, self.where(folder, split)).sample(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, self.origin[split])


def first_classes(source: Source, count: int) -> DerivedSource:
    """Keep the examples of the first `count` classes; keep all of a test file without labels."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        if examples.targets is None:
            return examples
        rows = np.flatnonzero(examples.targets < count)
        if not len(rows):
            raise DataError(f"{where}: expected examples of the first {count} classes, found none")
        return examples.select(rows)

    return DerivedSource(source, make, {split: split for split in source.splits})


@dataclass(frozen=True)
class WithoutLeaks:
    """Leave out training examples that are also in dev or test, of the source or of `others`.

    Texts are compared by `normalise_text`. In a pair both must be equal, in either order. A limit
    applies to the examples that are left.
    """

    source: Source
    others: tuple[Source, ...]

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split != "train":
            return self.source.read(folder, split, limit)
        held = {key for source in (self.source, *self.others) for key in held_out(source, folder)}
        examples = self.source.read(folder, "train")
        fresh = np.array([key not in held for key in keys(examples)], bool)
        if not fresh.any():
            where = self.where(folder, split)
            raise DataError(f"{where}: expected examples that are not in dev or test, found none")
        kept = examples.select(np.flatnonzero(fresh))
        return replace(kept, leaked=int((~fresh).sum())).sample(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)


def held_out(source: Source, folder: Path) -> set[frozenset[str]]:
    """Return the keys of the examples of dev and test; a split without a file has none."""
    found: set[frozenset[str]] = set()
    for split in existing_files(source, folder):
        if split != "train":
            found.update(keys(source.read(folder, split)))
    return found


def existing_files(source: Source, folder: Path) -> dict[str, Path]:
    """Return the file of each split that has one."""
    files = {split: Path(source.where(folder, split)) for split in source.splits}
    return {split: file for split, file in files.items() if file.exists()}


def keys(examples: Examples) -> list[frozenset[str]]:
    """Return the set of normalised texts of each example, which identifies it."""
    return [frozenset(map(normalise_text, texts)) for texts in zip(*examples.texts, strict=True)]


# (a hash of each example) -> the rows of each split, in a random order.
Rule = Callable[[np.ndarray], dict[str, np.ndarray]]


@dataclass(frozen=True)
class SplitFile:
    """Splits of a training file by a rule, the same for every run; `held` are those beside train.

    Examples with equal texts are in the same split. With `optional_dev`, a file for dev is used if
    there is one.
    """

    source: LabelledFiles
    rule: Rule
    held: tuple[str, ...] = ("dev",)
    optional_dev: bool = False
    splits: tuple[str, ...] = ("train", "dev", "test")

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if not self.parted(folder, split):
            return self.source.read(folder, split, limit)
        examples = self.source.read(folder, "train")
        parts = self.rule(hashes(examples))
        check_parts(parts, len(examples), self.where(folder, "train"))
        rows = parts[split]
        if split != "train":  # blank rows are reported once
            return replace(examples.select(np.sort(rows)), blank_rows=0)
        drawn = rows[: amount(len(rows), limit)]
        before = None if len(drawn) == len(rows) else len(rows)
        return replace(examples.select(np.sort(drawn)), drawn_from=before)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, "train" if self.parted(folder, split) else split)

    def parted(self, folder: Path, split: str) -> bool:
        """Return whether a split is a part of the training file."""
        if self.optional_dev and Path(self.source.where(folder, "dev")).exists():
            return False
        return split in ("train", *self.held)


def shares(test: float | None = None) -> Rule:
    """Return a rule: a tenth, at most 10,000 examples, is dev, and perhaps this share is test."""

    def parts(known: np.ndarray) -> dict[str, np.ndarray]:
        sizes = {"dev": min(MOST_DEV, max(1, round(DEV * len(known))))}
        if test is not None:
            sizes = {"test": max(1, round(test * len(known))), **sizes}
        order = np.random.default_rng(0).permutation(len(known))
        return dict(zip(("train", *sizes), deal(known, order, [*sizes.values()]), strict=True))

    return parts


def by_hash(known: np.ndarray, test: bool) -> dict[str, np.ndarray]:
    """Return a tenth of the rows as dev, and with `test` another tenth as test, by their hashes.

    So a row and a text are in the same split of all tasks and of all files.
    """
    tenths = np.array([*["train"] * 8, "dev", "test" if test else "train"])
    order = np.random.default_rng(0).permutation(len(known))
    part = tenths[known % 10][order]
    return {split: order[part == split] for split in np.unique(tenths)}


def hashes(examples: Examples) -> np.ndarray:
    """Return a 64-bit hash of each example's texts."""
    every = zip(*examples.texts, strict=True)
    return np.fromiter(map(text_hash, every), np.uint64, len(examples))


def check_parts(parts: Mapping[str, np.ndarray], count: int, where: str) -> None:
    """Raise DataError if there are no rows for one of the splits."""
    for split, rows in parts.items():
        if not len(rows):
            expected = f"expected more examples with different texts, found none for {split}"
            cure = "add rows, or name files for dev and test"
            raise DataError(f"{where}: {expected} among {count:,}; {cure}")


def deal(known: np.ndarray, order: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Deal rows in this order; return the rest, then parts of at most these sizes.

    Rows of the same hash are in one part, or all in the rest if they do not fit.
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


def random_split(examples: Examples, count: int, where: str) -> tuple[Examples, Examples]:
    """Draw `count` examples, always the same ones, and return them and the others.

    Examples with equal texts stay together, so that no text is on both sides; if they do not fit,
    fewer than `count` are drawn.
    """
    if not 0 < count < len(examples):
        raise DataError(f"{where}: expected at least two examples to split, found {len(examples)}")
    order = np.random.default_rng(0).permutation(len(examples))
    others, drawn = deal(hashes(examples), order, (count,))
    check_parts({"one of two parts": drawn}, len(examples), where)
    first, rest = (examples.select(np.sort(rows)) for rows in (drawn, others))
    return replace(first, blank_rows=0), rest  # blank labels are reported once
