"""Which examples of a task's files are train, dev and test: few-shot, or with labels held out.

Test labels of the usual benchmarks are not public, so that the labelled files are parted anew. The
same seed always draws the same examples; dev and test do not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tasks.labelled_files import Source
from tasks.parting import dealt
from tasks.readers import Examples, Limit, text_hash
from tasks.text_files import DataError

VALIDATION = 500  # examples at most (Moukafih et al., 2022, section 4.1)
HELD_OUT = 0.1  # of the training examples, as dev


@dataclass(frozen=True)
class FewShot:
    """`shots` labelled examples in all, as many of each class as can be; drawn by `seed`.

    Dev is half of the dev file, at most 500 examples, and test the rest of it (Moukafih et al.,
    2022, section 4.1, after Gunel et al., 2021), or the split `test` of the source.
    """

    source: Source
    shots: int
    classes: int
    seed: int
    test: str | None = None
    splits: tuple[str, ...] = ("train", "dev", "test")
    names: tuple[str, ...] = ()  # of the classes

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "train":
            examples = self.source.read(folder, "train")
            where = self.source.where(folder, "train")
            names = self.names or tuple(map(str, range(self.classes)))
            rows = few_of_each(examples, self.shots, names, self.seed, where)
            return examples.at(rows).some(limit)
        if split == "test" and self.test is not None:
            return self.source.read(folder, self.test)
        examples = self.source.read(folder, "dev")
        count = min(VALIDATION, len(examples) // 2)
        first, rest = parted(examples, count, self.source.where(folder, "dev"))
        return first if split == "dev" else rest

    def where(self, folder: Path, split: str) -> str:
        if split == "test" and self.test is not None:
            return self.source.where(folder, self.test)
        return self.source.where(folder, "train" if split == "train" else "dev")


@dataclass(frozen=True)
class HeldOut:
    """Dev is a tenth of the training file, test the dev file with its labels."""

    source: Source
    splits: tuple[str, ...] = ("train", "dev", "test")

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        if split == "test":
            return self.source.read(folder, "dev")
        examples = self.source.read(folder, "train")
        count = max(1, round(HELD_OUT * len(examples)))
        first, rest = parted(examples, count, self.source.where(folder, "train"))
        return first if split == "dev" else rest.some(limit)

    def where(self, folder: Path, split: str) -> str:
        return self.source.where(folder, "dev" if split == "test" else "train")


def parted(examples: Examples, count: int, where: str) -> tuple[Examples, Examples]:
    """`count` examples drawn at random, always the same ones, and the others.

    Examples of the same texts stay together, so that none is on both sides; where they do not fit
    there are fewer than `count`.
    """
    if not 0 < count < len(examples):
        raise DataError(f"{where}: expected two examples or more to part, found {len(examples)}")
    known = np.array([text_hash(texts) for texts in zip(*examples.texts, strict=True)], np.uint64)
    order = np.random.default_rng(0).permutation(len(examples))
    others, drawn = dealt(known, order, (count,))
    if not len(drawn):
        raise DataError(f"{where}: expected different texts to part, found each too often")
    first, rest = (examples.at(np.sort(rows)) for rows in (drawn, others))
    return replace(first, blank_labels=0), rest  # which are told once


def few_of_each(
    examples: Examples, shots: int, names: Sequence[str], seed: int, where: str
) -> np.ndarray:
    """Rows of `shots` examples, classes as even as they can be; DataError where there are fewer."""
    share, more = divmod(shots, len(names))
    if not share:
        raise DataError(f"{where}: expected a shot a class or more, {len(names)}, found {shots}")
    draw = np.random.default_rng([seed, shots])
    rows = []
    for label, name in enumerate(names):
        own, wanted = np.flatnonzero(examples.targets == label), share + (label < more)
        if len(own) < wanted:
            raise DataError(
                f"{where}: expected {wanted} examples of class {name} for {shots} shots, "
                f"found {len(own)}"
            )
        rows.append(draw.permutation(own)[:wanted])
    return np.sort(np.concatenate(rows))
