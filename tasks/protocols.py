"""Protocols: which labelled examples are train, dev and test, for benchmarks with a hidden test.

The same random seed always draws the same training examples; test does not depend on it.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from common.settings import AtLeastOne, Count, Settings, setting
from tasks.base import Task
from tasks.readers import Examples, Source, files_of
from tasks.splits import Derived, deal, split_by, without_leaks
from tasks.tables import DataError

MAX_DEV = 500  # examples of dev (Moukafih et al., 2022, section 4.1, after Gunel et al., 2021)
HELD_OUT = 0.1  # of the training examples, as dev
CAPPED_DEV = 0.05  # of the drawn examples, as dev (Zhang et al., 2022, section 3.1)
Parts = dict[str, slice]  # train and dev, of the shuffled examples of a class


class Protocol(Settings, name="files"):
    """The splits of a task's files, from whose labelled examples the other protocols draw.

    `dev_of` is the split of which dev is made; `keeps_labelled_test`: not if test has labels. One
    that `draws` examples of each class needs classes. `removes_leaks_first`: before examples are
    drawn, so that none of these are lost. Elsewhere dev is a part of train, which may repeat texts.
    """

    dev_of: ClassVar[str | None] = None
    keeps_labelled_test: ClassVar[bool] = False
    draws: ClassVar[bool] = False
    removes_leaks_first: ClassVar[bool] = False

    def source(self, source: Source, task: Task, seed: int) -> Source:
        """Return a source of the protocol's splits; test is test if it has labels, else dev."""
        labelled = getattr(files_of(task.source), "labelled_test", False)
        if self.dev_of is None or (self.keeps_labelled_test and labelled):
            return source
        origin = {"train": "train", "dev": self.dev_of, "test": "test" if labelled else "dev"}

        def make(examples: Examples, split: str, folder: Path) -> Examples:
            if split == "test" and origin["test"] != self.dev_of:
                return examples
            return self.make(examples, split, source.where(folder, origin[split]), task, seed)

        return Derived(source, make, origin)

    def make(self, examples: Examples, split: str, where: str, task: Task, seed: int) -> Examples:
        """Return the examples of a split, from those of the file `where`."""
        raise NotImplementedError


class HeldOutTenth(Protocol, name="held-out"):
    """A tenth of train as dev, dev as test; tasks whose test has labels keep all their splits."""

    dev_of = "train"
    keeps_labelled_test = True

    def make(self, examples: Examples, split: str, where: str, task: Task, seed: int) -> Examples:
        held = partial(deal, sizes={"dev": max(1, round(HELD_OUT * len(examples)))})
        return split_by(examples, held, where)[split]


class DrawingProtocol(Protocol):
    """A protocol that draws some examples of each class; `parts` says how many."""

    dev_of = "train"
    draws = True
    shots: Count = setting(help="labelled examples, of each class; with few-shot, in all")

    def parts(self, sizes: list[int]) -> list[Parts]:
        """Return the parts of each class, given its number of examples."""
        raise NotImplementedError

    def make(self, examples: Examples, split: str, where: str, task: Task, seed: Any) -> Examples:
        """Return the examples of train or dev; raise DataError if a class has too few."""
        draw, chosen = np.random.default_rng(seed), []
        classes = [np.flatnonzero(examples.targets == n) for n in range(len(task.kind.names))]
        several = self.parts([len(rows) for rows in classes])
        for name, rows, parts in zip(task.kind.names, classes, several, strict=True):
            if len(rows) < (needed := max(part.stop for part in parts.values())):
                line = f"expected {needed} examples of class {name} for {' and '.join(parts)}"
                raise DataError(f"{where}: {line}, found {len(rows)}")
            chosen.append(draw.permutation(rows)[parts[split]])
        if not (rows := np.sort(np.concatenate(chosen))).size:
            raise DataError(f"{where}: no class has two or more examples")
        found = examples.select(rows)
        return found if split == "train" else replace(found, blank_rows=0)  # reported once


class FewShots(DrawingProtocol, name="few-shot"):
    """--shots training examples in all, half of dev as dev, the rest of dev as test.

    A test split with labels is used as it is.
    """

    dev_of = "dev"
    removes_leaks_first = True

    def parts(self, sizes: list[int]) -> list[Parts]:
        share, more = divmod(self.shots, len(sizes))
        if not share:
            line = f"shots must be {len(sizes)} or more, one for each class, found {self.shots}"
            raise DataError(f"protocol {self.name}: {line}")
        return [{"train": slice(share + (label < more))} for label in range(len(sizes))]

    def make(self, examples: Examples, split: str, where: str, task: Task, seed: Any) -> Examples:
        if split == "train":
            return super().make(examples, split, where, task, [seed, self.shots])
        half = partial(deal, sizes={"dev": min(MAX_DEV, len(examples) // 2)})
        return split_by(examples, half, where)["dev" if split == "dev" else "train"]


class CappedClasses(DrawingProtocol, name="capped"):
    """At most --shots examples of each class of train, a twentieth as dev, dev as test (LaCon)."""

    def parts(self, sizes: list[int]) -> list[Parts]:
        capped = [min(size, self.shots) for size in sizes]
        held = [max(1, round(CAPPED_DEV * count)) if count > 1 else 0 for count in capped]
        pairs = zip(capped, held, strict=True)
        return [{"train": slice(n, count), "dev": slice(n)} for count, n in pairs]


class FewPerClass(DrawingProtocol, name="few-a-class"):
    """--shots training examples of each class, an equal number of others as dev, dev as test.

    With --imbalance these are of the rarest class, others on a geometric scale (Cao et al., 2019).
    """

    imbalance: AtLeastOne = setting(1.0, help="size of the largest class over the smallest")

    def parts(self, sizes: list[int]) -> list[Parts]:
        steps = np.empty(len(sizes))
        steps[np.argsort(sizes, kind="stable")] = np.linspace(0, 1, len(sizes))
        counts = [round(self.shots * float(self.imbalance**step)) for step in steps]
        return [{"train": slice(n), "dev": slice(n, 2 * n)} for n in counts]


def apply_protocol(
    task: Task, protocol: Protocol, seed: int, others: tuple[Source, ...] | None = None
) -> Source:
    """Return a task's source after the protocol.

    The dev and test texts of the task and of `others` are removed from train; None removes none.
    """
    if others is None:
        return protocol.source(task.source, task, seed)
    if protocol.removes_leaks_first:
        return protocol.source(without_leaks(task.source, others), task, seed)
    return without_leaks(protocol.source(task.source, task, seed), others)
