"""Protocols: which labelled examples are train, dev and test. No torch is imported here.

Test labels of the usual benchmarks are not public, so the labelled files are split again. The same
random seed always draws the same training examples; test does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from common.errors import UserError
from common.settings import AtLeastOne, Count, Settings, setting
from tasks.labelled_files import Source
from tasks.readers import Examples
from tasks.splits import DerivedSource, PartedSource, WithoutLeaks, parted
from tasks.text_files import DataError

if TYPE_CHECKING:
    from tasks.base import Task


class Protocol(Settings):
    """Which labelled examples of a task are train, dev and test.

    `guarded_first`: texts of dev and test are removed from train before examples are drawn, so that
    none of these are lost. Elsewhere dev is a part of train, in which texts may be repeated.
    """

    guarded_first: ClassVar[bool] = False

    def source(self, source: Source, task: Task, seed: int) -> Source:
        """Return a source of the protocol's splits of a task's files."""
        raise UserError(f"protocol {self.name}: expected a method source, found none")

    def faults(self) -> Iterator[str]:
        if hasattr(self, "shots") and self.shots is None:
            yield f"protocol {self.name}: expected shots, found none"

    @property
    def counts_examples(self) -> bool:
        """Return whether the protocol itself sets the number of examples."""
        return hasattr(self, "shots")


SHOTS = "labelled examples of each class"
VALIDATION = 500  # most examples of dev (Moukafih et al., 2022, section 4.1)
HELD_OUT = 0.1  # of the training examples, as dev
KEPT_FOR_DEV = 0.05  # of the drawn examples, as dev (Zhang et al., 2022)


class AllFiles(Protocol, name="files"):
    """The splits of the files."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return source


class FewShots(Protocol, name="few-shot"):
    """--shots training examples in all, half of dev as dev, the rest of dev as test."""

    guarded_first = True
    shots: Count | None = setting(None, help="labelled examples in all, balanced over the classes")

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return few_shot(source, needed(self.shots), class_names(task), seed, has_test(task))


class HeldOutTenth(Protocol, name="held-out"):
    """A tenth of train as dev, dev as test."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return source if has_test(task) else held_out_tenth(source)


class CappedClasses(Protocol, name="capped"):
    """At most --shots examples of each class of train, a twentieth of them as dev, dev as test."""

    shots: Count | None = setting(None, help=SHOTS)

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return capped(source, needed(self.shots), len(class_names(task)), seed, labelled_test(task))


class FewPerClass(Protocol, name="few-a-class"):
    """--shots training examples of each class, an equal number of others as dev, dev as test."""

    shots: Count | None = setting(None, help=SHOTS)

    def source(self, source: Source, task: Task, seed: int) -> Source:
        names, test = class_names(task), labelled_test(task)
        return even(source, needed(self.shots), names, seed, test)


class Imbalanced(Protocol, name="imbalanced"):
    """--shots examples of the rarest class, --imbalance times as many of the most frequent."""

    shots: Count | None = setting(None, help="labelled examples of the rarest class")
    imbalance: AtLeastOne | None = setting(
        None, help="size of the most frequent class over the rarest"
    )

    def source(self, source: Source, task: Task, seed: int) -> Source:
        ratio = self.imbalance or 1.0
        names, test = class_names(task), labelled_test(task)
        return even(source, needed(self.shots), names, seed, test, ratio)

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.imbalance is None:
            yield f"protocol {self.name}: expected imbalance, found none"


def drawn(
    task: Task, protocol: Protocol, seed: int, others: tuple[Source, ...] | None = None
) -> Source:
    """Return a task's source after the protocol and the removal of held-out texts from train.

    The dev and test texts of the task and of `others` are removed; None removes no texts.
    """
    if protocol.guarded_first:
        return protocol.source(guarded(task.source, others), task, seed)
    return guarded(protocol.source(task.source, task, seed), others)


def guarded(source: Source, others: tuple[Source, ...] | None) -> Source:
    return source if others is None else WithoutLeaks(source, others)


def needed(shots: int | None) -> int:
    assert shots is not None, "checked when the protocol was made"
    return shots


def class_names(task: Task) -> tuple[str, ...]:
    """Return what the classes are called, or their numbers."""
    assert task.kind.classes is not None, "checked when the configuration was made"
    return task.kind.class_names or tuple(map(str, range(task.kind.classes)))


def labelled_test(task: Task) -> str:
    """Return the split whose labelled examples are test."""
    return "test" if has_test(task) else "dev"


def has_test(task: Task) -> bool:
    """Return whether the source already holds out dev and test with labels."""
    source = task.source
    while isinstance(source, DerivedSource):
        source = source.source
    return isinstance(source, PartedSource)


def held_out_tenth(source: Source) -> DerivedSource:
    """Use a tenth of the training file as dev, and the labelled dev file as test."""

    def make(examples: Examples, split: str, where: str) -> Examples:
        if split == "test":
            return examples
        first, rest = parted(examples, max(1, round(HELD_OUT * len(examples))), where)
        return first if split == "dev" else rest

    return DerivedSource(source, make, {"train": "train", "dev": "train", "test": "dev"})


def few_shot(
    source: Source, shots: int, names: Sequence[str], seed: int, own_test: bool = False
) -> DerivedSource:
    """Draw `shots` training examples in all, balanced over the classes.

    Dev is half of the dev file, at most 500 examples. Test is the rest of it (Moukafih et al.,
    2022, section 4.1, after Gunel et al., 2021) or, with `own_test`, the source's own test.
    """

    def make(examples: Examples, split: str, where: str) -> Examples:
        if split == "train":
            return examples.at(few_of_each(examples, shots, names, seed, where))
        if split == "test" and own_test:
            return examples
        first, rest = parted(examples, min(VALIDATION, len(examples) // 2), where)
        return first if split == "dev" else rest

    return DerivedSource(
        source, make, {"train": "train", "dev": "dev", "test": "test" if own_test else "dev"}
    )


def few_of_each(
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


def capped(source: Source, shots: int, classes: int, seed: int, test: str) -> DerivedSource:
    """Draw at most `shots` examples of each class; a twentieth of them, at least one, is dev.

    `test` is the source's split that is used as test (Zhang et al., 2022, section 3.1).
    """

    def make(examples: Examples, split: str, where: str) -> Examples:
        if split == "test":
            return examples
        parts: dict[str, list[np.ndarray]] = {"train": [], "dev": []}
        for several in by_class(examples, classes, seed):
            rows = several[:shots]
            held = max(1, round(KEPT_FOR_DEV * len(rows))) if len(rows) > 1 else 0
            parts["dev"].append(rows[:held])
            parts["train"].append(rows[held:])
        rows = np.sort(np.concatenate(parts[split]))
        if not len(rows):
            raise DataError(
                f"{where}: expected a class with two or more examples to split, found none"
            )
        found = examples.at(rows)
        return found if split == "train" else replace(found, blank_labels=0)

    return DerivedSource(source, make, {"train": "train", "dev": "train", "test": test})


def even(
    source: Source, shots: int, names: Sequence[str], seed: int, test: str, ratio: float = 1.0
) -> DerivedSource:
    """Draw `shots` examples of each class, and as many others for dev.

    With a `ratio` above 1 the rarest class has `shots` examples, the most frequent `ratio` times as
    many, the others numbers on a geometric scale (Cao et al., 2019). `test` is as in `capped`.
    """

    def make(examples: Examples, split: str, where: str) -> Examples:
        if split == "test":
            return examples
        drawn = by_class(examples, len(names), seed)
        rows = []
        for name, several, wanted in zip(names, drawn, counts(drawn, shots, ratio), strict=True):
            if len(several) < 2 * wanted:
                raise DataError(
                    f"{where}: expected {2 * wanted} examples of class {name}, half of them for "
                    f"dev, found {len(several)}"
                )
            rows.append(several[:wanted] if split == "train" else several[wanted : 2 * wanted])
        found = examples.at(np.sort(np.concatenate(rows)))
        return found if split == "train" else replace(found, blank_labels=0)

    return DerivedSource(source, make, {"train": "train", "dev": "train", "test": test})


def counts(drawn: Sequence[np.ndarray], shots: int, ratio: float) -> list[int]:
    """Return how many examples of each class are drawn; see `even`."""
    order = np.argsort([len(rows) for rows in drawn], kind="stable")  # the rarest first
    steps = np.empty(len(drawn))
    steps[order] = np.linspace(0, 1, len(drawn))
    return [round(shots * float(ratio**step)) for step in steps]


def by_class(examples: Examples, classes: int, seed: int) -> list[np.ndarray]:
    """Return the rows of each class, shuffled."""
    draw = np.random.default_rng(seed)
    return [draw.permutation(np.flatnonzero(examples.targets == c)) for c in range(classes)]
