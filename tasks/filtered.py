"""Examples of a task's files that are changed or left out: first classes, joined texts, leaks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.labelled_files import Source
from tasks.readers import Examples, Limit, bare
from tasks.text_files import DataError, is_there


@dataclass(frozen=True)
class FirstClasses:
    """The examples of the first `count` classes alone; all of a test file without labels."""

    source: Source
    count: int

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        examples = self.source.read(folder, split)
        if examples.targets is None:
            return examples
        rows = np.flatnonzero(examples.targets < self.count)
        if not len(rows):
            where = self.where(folder, split)
            raise DataError(f"{where}: expected examples of the first {self.count} classes")
        return examples.at(rows).some(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)


@dataclass(frozen=True)
class Joined:
    """The texts of an example as one, such as a title and what follows it."""

    source: Source

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        examples = self.source.read(folder, split, limit)
        texts = [" ".join(filter(None, several)) for several in zip(*examples.texts, strict=True)]
        return replace(examples, texts=(texts,))

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)


@dataclass(frozen=True)
class WithoutHeldOut:
    """Training examples whose texts are not an example of dev or test, its own or of `others`.

    Letters and digits are compared; of a pair both texts, whichever comes first.
    """

    source: Source
    others: tuple[Source, ...]

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split != "train":
            return self.source.read(folder, split, limit)
        examples = self.source.read(folder, "train")
        held = {key for source in (self.source, *self.others) for key in held_out(source, folder)}
        fresh = np.array([key not in held for key in keys(examples)], bool)
        if not fresh.any():
            where = self.where(folder, split)
            raise DataError(f"{where}: expected examples that are not in dev or test, found none")
        found = replace(examples.at(np.flatnonzero(fresh)), leaked=int((~fresh).sum()))
        return found.some(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, split)


def held_out(source: Source, folder: Path) -> set[frozenset[str]]:
    """What identifies the examples of dev and test; a split without a file has none."""
    found: set[frozenset[str]] = set()
    for split in source.splits:
        if split != "train" and is_there(Path(source.where(folder, split))):
            found.update(keys(source.read(folder, split)))
    return found


def keys(examples: Examples) -> list[frozenset[str]]:
    """An example's texts, by which it is known again."""
    return [frozenset(map(bare, texts)) for texts in zip(*examples.texts, strict=True)]
