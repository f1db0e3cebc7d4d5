"""Protocols: which labelled examples are train, dev and test.

Test labels of the usual benchmarks are not public, so the labelled files are split again. The same
random seed always draws the same training examples; test does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


class Protocol(Settings):
    """Which labelled examples of a task are train, dev and test.

    `removes_leaks_first`: texts of dev and test are removed from train before examples are drawn,
    so that none of these are lost. Elsewhere dev is a part of train, which may repeat texts.
    """

    removes_leaks_first: ClassVar[bool] = False

    def source(self, source: Source, task: Task, seed: int) -> Source:
        """Return a source of the protocol's splits of a task's files."""
        raise UserError(f"protocol {self.name}: expected a method source, found none")

    def faults(self) -> Iterator[str]:
        if hasattr(self, "shots") and self.shots is None:
            yield f"protocol {self.name}: expected setting shots, found none"

    @property
    def counts_examples(self) -> bool:
        """Return whether the protocol itself sets the number of examples."""
        return hasattr(self, "shots")

    def draws_by_seed(self, split: str) -> bool:
        """Return whether shots and seed determine the examples of a split."""
        return self.counts_examples and split != "test"


SHOTS = "labelled examples of each class"
MAX_DEV = 500  # examples of dev (Moukafih et al., 2022, section 4.1)
HELD_OUT = 0.1  # of the training examples, as dev
CAPPED_DEV = 0.05  # of the drawn examples, as dev (Zhang et al., 2022)


class AllFiles(Protocol, name="files"):
    """The splits of the files."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return source


class FewShots(Protocol, name="few-shot"):
    """--shots training examples in all, half of dev as dev, the rest of dev as test.

    Dev has at most 500 examples (Moukafih et al., 2022, section 4.1, after Gunel et al., 2021). A
    test split with labels is used as it is.
    """

    removes_leaks_first = True
    shots: Count | None = setting(None, help="labelled examples in all, balanced over the classes")

    def draws_by_seed(self, split: str) -> bool:
        return split == "train"  # dev is split without them

    def source(self, source: Source, task: Task, seed: int) -> Source:
        shots, names, test = needed(self.shots), task.kind.names, labelled_test(task)

        def make(examples: Examples, split: str, where: str) -> Examples:
            if split == "train":
                return examples.select(balanced_rows(examples, shots, names, seed, where))
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


class CappedClasses(Protocol, name="capped"):
    """At most --shots examples of each class of train, a twentieth of them as dev, dev as test.

    At least one example of a class is dev (Zhang et al., 2022, section 3.1).
    """

    shots: Count | None = setting(None, help=SHOTS)

    def source(self, source: Source, task: Task, seed: int) -> Source:
        shots, classes = needed(self.shots), len(task.kind.names)

        def choose(examples: Examples, split: str, where: str) -> list[np.ndarray]:
            chosen = []
            for shuffled in by_class(examples, classes, seed):
                rows = shuffled[:shots]
                held = max(1, round(CAPPED_DEV * len(rows))) if len(rows) > 1 else 0
                chosen.append(rows[held:] if split == "train" else rows[:held])
            if not sum(map(len, chosen)):
                raise DataError(
                    f"{where}: expected a class with two or more examples to split, found none"
                )
            return chosen

        return train_and_dev(source, task, choose)


class FewPerClass(Protocol, name="few-a-class"):
    """--shots training examples of each class, an equal number of others as dev, dev as test."""

    shots: Count | None = setting(None, help=SHOTS)

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return few_per_class(source, task, needed(self.shots), 1.0, seed)


class Imbalanced(Protocol, name="imbalanced"):
    """--shots examples of the rarest class, --imbalance times as many of the most frequent."""

    shots: Count | None = setting(None, help="labelled examples of the rarest class")
    imbalance: AtLeastOne | None = setting(
        None, help="size of the most frequent class over the rarest"
    )

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return few_per_class(source, task, needed(self.shots), self.imbalance or 1.0, seed)

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


def needed(shots: int | None) -> int:
    assert shots is not None, "checked when the protocol was made"
    return shots


def labelled_test(task: Task) -> str:
    """Return the split whose labelled examples are test: test if it has labels, else dev."""
    return "test" if getattr(innermost(task.source), "labelled_test", False) else "dev"


def balanced_rows(
    examples: Examples, shots: int, names: Sequence[str], seed: int, where: str
) -> np.ndarray:
    """Return rows of `shots` examples, balanced over classes; raise DataError for too few."""
    share, more = divmod(shots, len(names))
    if not share:
        raise DataError(f"{where}: expected a shot per class, {len(names)}, found {shots}")
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


# (examples of train, train or dev, its files for messages) -> rows of each class.
Choose = Callable[[Examples, str, str], list[np.ndarray]]


def train_and_dev(source: Source, task: Task, choose: Choose) -> DerivedSource:
    """Choose train and dev from the training examples; test is the labelled split."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        if split == "test":
            return examples
        found = examples.select(np.sort(np.concatenate(choose(examples, split, where))))
        return found if split == "train" else replace(found, blank_rows=0)

    origin = {"train": "train", "dev": "train", "test": labelled_test(task)}
    return DerivedSource(source, make, origin)


def few_per_class(source: Source, task: Task, shots: int, ratio: float, seed: int) -> DerivedSource:
    """Draw `shots` examples of each class, and as many others for dev.

    With a `ratio` above 1 the rarest class has `shots` examples, the most frequent `ratio` times as
    many, the others numbers on a geometric scale (Cao et al., 2019).
    """
    names = task.kind.names

    def choose(examples: Examples, split: str, where: str) -> list[np.ndarray]:
        shuffled = by_class(examples, len(names), seed)
        order = np.argsort([len(rows) for rows in shuffled], kind="stable")  # the rarest first
        steps = np.empty(len(names))
        steps[order] = np.linspace(0, 1, len(names))
        chosen = []
        for name, rows, step in zip(names, shuffled, steps, strict=True):
            count = round(shots * float(ratio**step))
            if len(rows) < 2 * count:
                raise DataError(
                    f"{where}: expected {2 * count} examples of class {name}, half of them for "
                    f"dev, found {len(rows)}"
                )
            chosen.append(rows[:count] if split == "train" else rows[count : 2 * count])
        return chosen

    return train_and_dev(source, task, choose)


def by_class(examples: Examples, classes: int, seed: int) -> list[np.ndarray]:
    """Return the rows of each class, shuffled."""
    draw = np.random.default_rng(seed)
    return [draw.permutation(np.flatnonzero(examples.targets == c)) for c in range(classes)]
