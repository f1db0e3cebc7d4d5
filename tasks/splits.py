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
from tasks.text_files import DataError

FEW_DIFFERENT_TEXTS = (
    "expected rows with different texts for each part, found equal texts in too many rows; remove "
    "repeated rows"
)

DEV, MOST_DEV = 0.1, 10_000  # share of the training file, and most examples

# (examples of the source's split, the new split, its files for messages) -> its examples.
Make = Callable[[Examples, str, str], Examples]


@dataclass(frozen=True)
class DerivedSource:
    """Splits that a function derives from another source's splits.

    `origin` maps each split to the source's split from which it is derived. With `row_by_row`,
    `make` keeps the number of examples, so that a limit is applied while reading.
    """

    source: Source
    make: Make
    origin: Mapping[str, str]
    row_by_row: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.origin)

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        drawn = limit if self.row_by_row else None
        examples = self.source.read(folder, self.origin[split], drawn)
        found = self.make(examples, split, self.where(folder, split))
        return found if self.row_by_row else found.sample(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, self.origin[split])


def of_each_split(source: Source, make: Make, row_by_row: bool = False) -> DerivedSource:
    """Apply a function to the examples of every split."""
    return DerivedSource(source, make, {split: split for split in source.splits}, row_by_row)


def first_classes(source: Source, count: int) -> DerivedSource:
    """Keep the examples of the first `count` classes; keep all of a test file without labels."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        if examples.targets is None:
            return examples
        rows = np.flatnonzero(examples.targets < count)
        if not len(rows):
            raise DataError(f"{where}: expected examples of the first {count} classes, found none")
        return examples.select(rows)

    return of_each_split(source, make)


def joined_texts(source: Source) -> DerivedSource:
    """Join the texts of an example, such as a title and a body."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        texts = [" ".join(filter(None, several)) for several in zip(*examples.texts, strict=True)]
        return replace(examples, texts=(texts,))

    return of_each_split(source, make, row_by_row=True)


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


@dataclass(frozen=True)
class PartedSource:
    """A tenth of the training file, at most 10,000 examples, is dev; test is another file or share.

    The split does not depend on a run's random seed, and keeps examples with equal texts together.
    The file is read twice and only the split's rows are held: files may be larger than memory.
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
        held, tested = held_out_sizes(count, self.test)
        if tested + held >= count:
            raise DataError(f"{where}: expected more examples to split, found {count}")
        rows = dict(zip(("train", "test", "dev"), deal(known, order, (tested, held)), strict=True))
        if not len(rows[split]):
            raise DataError(f"{where}: {FEW_DIFFERENT_TEXTS}")
        return read_part(self.source, folder, split, rows[split], limit)

    def where(self, folder: Path, split: str) -> str:
        own = split == "test" and self.test is None
        return self.source.where(folder, "test" if own else "train")


@dataclass(frozen=True)
class HashedSource:
    """Each row of the training file is train, dev or test by a hash of its group, or of its texts.

    A tenth is dev, and with `test` another tenth is test; otherwise test is a file. So a row, a
    text and a group are in one split of all tasks and of all files. The file is read twice and only
    the split's rows are held: files may be larger than memory.
    """

    source: LabelledFiles
    test: bool
    splits: tuple[str, ...] = ("train", "dev", "test")

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "test" and not self.test:
            return self.source.read(folder, "test", limit)
        known = self.source.hashes(folder, "train")
        tenths = np.array([*["train"] * 8, "dev", "test" if self.test else "train"])
        part = tenths[known % 10]
        order = np.random.default_rng(0).permutation(len(known))
        drawn = order[part[order] == split]
        if not len(drawn):
            found = f"found none for {split} among {len(known):,} labelled rows"
            cure = "add rows, or name files for dev and test"
            raise DataError(
                f"{self.where(folder, split)}: expected rows for each split, {found}; {cure}"
            )
        return read_part(self.source, folder, split, drawn, limit)

    def where(self, folder: Path, split: str) -> str:
        own = split == "test" and not self.test
        return self.source.where(folder, "test" if own else "train")


def read_part(
    source: LabelledFiles, folder: Path, split: str, rows: np.ndarray, limit: Limit
) -> Examples:
    """Return the examples in these rows of the training file, the first ones within a limit."""
    wanted = rows[: amount(len(rows), limit)] if split == "train" else rows
    found = source.select(folder, "train", np.sort(wanted))
    if split != "train":
        return replace(found, blank_rows=0)  # reported once
    return found if len(wanted) == len(rows) else replace(found, drawn_from=len(rows))


def held_out_sizes(count: int, test: float | None) -> tuple[int, int]:
    """Return the sizes of dev, and of test if it is a share of the same `count` examples."""
    tested = max(1, round(test * count)) if test else 0
    return min(MOST_DEV, max(1, round(DEV * count))), tested


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
    known = np.array([text_hash(texts) for texts in zip(*examples.texts, strict=True)], np.uint64)
    order = np.random.default_rng(0).permutation(len(examples))
    others, drawn = deal(known, order, (count,))
    if not len(drawn):
        raise DataError(f"{where}: {FEW_DIFFERENT_TEXTS}")
    first, rest = (examples.select(np.sort(rows)) for rows in (drawn, others))
    return replace(first, blank_rows=0), rest  # blank labels are reported once
