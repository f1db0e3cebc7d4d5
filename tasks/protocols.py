"""Protocols: which labelled examples are train, dev and test.

Test labels of the usual benchmarks are not public, so the labelled files are split again. The same
random seed always draws the same training examples; test does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np

from common.errors import UserError
from common.settings import AtLeastOne, Count, Settings, setting
from tasks.base import Task
from tasks.labelled_files import Source, innermost
from tasks.readers import Examples
from tasks.splits import DerivedSource, WithoutLeaks, random_split
from tasks.text_files import DataError

MAX_DEV = 500  # examples of dev (Moukafih et al., 2022, section 4.1)
HELD_OUT = 0.1  # of the training examples, as dev
CAPPED_DEV = 0.05  # of the drawn examples, as dev (Zhang et al., 2022)


class Protocol(Settings):
    """Which labelled examples of a task are train, dev and test.

    `counts_examples`: the protocol itself sets the number of examples, and needs classes.
    `removes_leaks_first`: texts of dev and test are removed from train before examples are drawn,
    so that none of these are lost. Elsewhere dev is a part of train, which may repeat texts.
    """

    counts_examples: ClassVar[bool] = False
    removes_leaks_first: ClassVar[bool] = False

    def source(self, source: Source, task: Task, seed: int) -> Source:
        """Return a source of the protocol's splits of a task's files."""
        raise UserError(f"protocol {self.name}: expected a method source, found none")

    def draws_by_seed(self, split: str) -> bool:
        """Return whether shots and seed determine the examples of a split."""
        return self.counts_examples and split != "test"


class DrawingProtocol(Protocol):
    """A protocol that draws some examples of each class."""

    counts_examples = True
    shots: Count | None = setting(
        None,
        help="labelled examples: few-shot: in all; imbalanced: of the rarest class; else of each",
    )

    def faults(self) -> Iterator[str]:
        if self.shots is None:
            yield f"protocol {self.name}: expected setting shots, found none"


class AllFiles(Protocol, name="files"):
    """The splits of the files."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return source


class FewShots(DrawingProtocol, name="few-shot"):
    """--shots training examples in all, half of dev as dev, the rest of dev as test.

    Dev has at most 500 examples (Moukafih et al., 2022, section 4.1, after Gunel et al., 2021). A
    test split with labels is used as it is.
    """

    removes_leaks_first = True

    def draws_by_seed(self, split: str) -> bool:
        return split == "train"  # dev is split without them

    def source(self, source: Source, task: Task, seed: int) -> Source:
        shots, names, test = self.shots or 0, task.kind.names, labelled_test(task)

        def balanced(examples: Examples, where: str) -> np.ndarray:
            share, more = divmod(shots, len(names))
            if not share:
                raise DataError(f"{where}: expected a shot per class, {len(names)}, found {shots}")
            counts = [share + (label < more) for label in range(len(names))]
            drawn = by_class(examples, len(names), [seed, shots])
            for name, rows, count in zip(names, drawn, counts, strict=True):
                check_count(rows, count, f"{name} for {shots} shots", where)
            return joined([rows[:count] for rows, count in zip(drawn, counts, strict=True)])

        def make(examples: Examples, split: str, where: str) -> Examples:
            if split == "train":
                return examples.select(balanced(examples, where))
            if split == "test" and test == "test":
                return examples
            first, rest = random_split(examples, min(MAX_DEV, len(examples) // 2), where)
            return first if split == "dev" else rest

        return DerivedSource(source, make, {"train": "train", "dev": "dev", "test": test})


class HeldOutTenth(Protocol, name="held-out"):
    """A tenth of train as dev, dev as test; tasks whose test has labels keep all their splits."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        if labelled_test(task) == "test":
            return source

        def make(examples: Examples, split: str, where: str) -> Examples:
            if split == "test":
                return examples
            count = max(1, round(HELD_OUT * len(examples)))
            first, rest = random_split(examples, count, where)
            return first if split == "dev" else rest

        return DerivedSource(source, make, {"train": "train", "dev": "train", "test": "dev"})


class CappedClasses(DrawingProtocol, name="capped"):
    """At most --shots examples of each class of train, a twentieth of them as dev, dev as test.

    At least one example of a class is dev (Zhang et al., 2022, section 3.1).
    """

    def source(self, source: Source, task: Task, seed: int) -> Source:
        def choose(examples: Examples, split: str, where: str) -> list[np.ndarray]:
            chosen = []
            for shuffled in by_class(examples, len(task.kind.names), seed):
                rows = shuffled[: self.shots]
                held = max(1, round(CAPPED_DEV * len(rows))) if len(rows) > 1 else 0
                chosen.append(rows[held:] if split == "train" else rows[:held])
            return chosen

        return train_and_dev(source, task, choose)


class FewPerClass(DrawingProtocol, name="few-a-class"):
    """--shots training examples of each class, an equal number of others as dev, dev as test."""

    @property
    def ratio(self) -> float:
        """Return the size of the most frequent class over that of the rarest."""
        return 1.0

    def source(self, source: Source, task: Task, seed: int) -> Source:
        names, shots = task.kind.names, self.shots or 0

        def choose(examples: Examples, split: str, where: str) -> list[np.ndarray]:
            shuffled = by_class(examples, len(names), seed)
            order = np.argsort([len(rows) for rows in shuffled], kind="stable")  # the rarest first
            steps = np.empty(len(names))
            steps[order] = np.linspace(0, 1, len(names))
            chosen = []
            for name, rows, step in zip(names, shuffled, steps, strict=True):
                count = round(shots * float(self.ratio**step))
                check_count(rows, 2 * count, f"{name}, half of them for dev", where)
                chosen.append(rows[:count] if split == "train" else rows[count : 2 * count])
            return chosen

        return train_and_dev(source, task, choose)


class Imbalanced(FewPerClass, name="imbalanced"):
    """--shots examples of the rarest class, --imbalance times as many of the most frequent.

    The numbers of the other classes are on a geometric scale (Cao et al., 2019).
    """

    imbalance: AtLeastOne | None = setting(
        None, help="size of the most frequent class over the rarest"
    )

    @property
    def ratio(self) -> float:
        return self.imbalance or 1.0

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.imbalance is None:
            yield f"protocol {self.name}: expected setting imbalance, found none"


def apply_protocol(
    task: Task, protocol: Protocol, seed: int, others: tuple[Source, ...] | None = None
) -> Source:
    """Return a task's source after the protocol and the removal of held-out texts from train.

    The dev and test texts of the task and of `others` are removed; None removes no texts.
    """
    if others is None:
        return protocol.source(task.source, task, seed)
    if protocol.removes_leaks_first:
        return protocol.source(WithoutLeaks(task.source, others), task, seed)
    return WithoutLeaks(protocol.source(task.source, task, seed), others)


def labelled_test(task: Task) -> str:
    """Return the split whose labelled examples are test: test if it has labels, else dev."""
    return "test" if getattr(innermost(task.source), "labelled_test", False) else "dev"


# (examples of train, train or dev, its files for messages) -> rows of each class.
Choose = Callable[[Examples, str, str], list[np.ndarray]]


def train_and_dev(source: Source, task: Task, choose: Choose) -> DerivedSource:
    """Choose train and dev from the training examples; test is the labelled split."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        if split == "test":
            return examples
        rows = joined(choose(examples, split, where))
        if not len(rows):
            raise DataError(f"{where}: expected a class with two or more examples, found none")
        found = examples.select(rows)
        return found if split == "train" else replace(found, blank_rows=0)

    origin = {"train": "train", "dev": "train", "test": labelled_test(task)}
    return DerivedSource(source, make, origin)


def by_class(examples: Examples, classes: int, seed: int | list[int]) -> list[np.ndarray]:
    """Return the rows of each class, shuffled."""
    draw = np.random.default_rng(seed)
    return [draw.permutation(np.flatnonzero(examples.targets == c)) for c in range(classes)]


def joined(rows: list[np.ndarray]) -> np.ndarray:
    return np.sort(np.concatenate(rows))


def check_count(rows: np.ndarray, count: int, name: str, where: str) -> None:
    """Raise DataError if a class has too few examples."""
    if len(rows) < count:
        raise DataError(f"{where}: expected {count} examples of class {name}, found {len(rows)}")
