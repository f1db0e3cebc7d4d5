"""Protocols: which labelled examples are train, dev and test. No torch is imported here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from common.errors import UserError
from common.settings import Count, FromOne, Settings, setting
from tasks.filtered import FirstClasses, Joined, WithoutHeldOut
from tasks.labelled_files import Source
from tasks.parting import Parted
from tasks.sampled import Capped, Even
from tasks.subsets import FewShot, HeldOut

if TYPE_CHECKING:
    from tasks.base import Task


class Protocol(Settings):
    """Which labelled examples of a task are train, dev and test.

    `guarded_first`: texts of dev and test leave train before examples are drawn, or there would be
    fewer of them. Elsewhere dev is a part of train, in which texts may come twice.
    """

    guarded_first: ClassVar[bool] = False

    def source(self, source: Source, task: Task, seed: int) -> Source:
        """What the protocol makes of a task's files."""
        raise UserError(f"protocol {self.name}: expected source")

    def faults(self) -> Iterator[str]:
        if hasattr(self, "shots") and self.shots is None:
            yield f"protocol {self.name}: expected shots, found none"

    @property
    def counts_examples(self) -> bool:
        """Whether the protocol itself says how many examples there are."""
        return hasattr(self, "shots")


SHOTS = "labelled examples of each class"


class AllFiles(Protocol, name="files"):
    """The files as they are."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return source


class FewShots(Protocol, name="few-shot"):
    """--shots of the training examples, half of dev for dev, its rest for test."""

    guarded_first = True
    shots: Count | None = setting(None, help="labelled examples in all, classes alike")

    def source(self, source: Source, task: Task, seed: int) -> Source:
        test = "test" if has_test(task) else None
        return FewShot(
            source, needed(self.shots), classes(task), seed, test, names=task.kind.class_names
        )


class HeldOutTenth(Protocol, name="held-out"):
    """A tenth of train for dev, dev for test."""

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return source if has_test(task) else HeldOut(source)


class CappedClasses(Protocol, name="capped"):
    """At most --shots of each class of train, a twentieth of them for dev, dev for test."""

    shots: Count | None = setting(None, help=SHOTS)

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return Capped(source, needed(self.shots), classes(task), seed, test=tested(task))


class FewOfEachClass(Protocol, name="few-a-class"):
    """--shots of each class, as many others for dev, dev for test."""

    shots: Count | None = setting(None, help=SHOTS)

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return even(source, task, needed(self.shots), 1.0, seed)


class Imbalanced(Protocol, name="imbalanced"):
    """--shots of the rarest class, --imbalance times as many of the most frequent."""

    shots: Count | None = setting(None, help="labelled examples of the rarest class")
    imbalance: FromOne | None = setting(
        None, help="size of the most frequent class over the rarest"
    )

    def source(self, source: Source, task: Task, seed: int) -> Source:
        return even(source, task, needed(self.shots), self.imbalance or 1.0, seed)

    def faults(self) -> Iterator[str]:
        yield from super().faults()
        if self.imbalance is None:
            yield f"protocol {self.name}: expected imbalance, found none"


def drawn(
    task: Task, protocol: Protocol, seed: int, others: tuple[Source, ...] | None = None
) -> Source:
    """A task's files, or what protocol and leak guard make of them.

    `others` are tasks whose dev and test texts are left out of train, as a task's own are; None
    leaves no text out.
    """
    if protocol.guarded_first:
        return protocol.source(guarded(task.source, others), task, seed)
    return guarded(protocol.source(task.source, task, seed), others)


def guarded(source: Source, others: tuple[Source, ...] | None) -> Source:
    return source if others is None else WithoutHeldOut(source, others)


def even(source: Source, task: Task, shots: int, ratio: float, seed: int) -> Source:
    """With a ratio above 1 the rarest class alone has that few."""
    names = task.kind.class_names
    return Even(source, shots, classes(task), seed, ratio, test=tested(task), names=names)


def needed(shots: int | None) -> int:
    assert shots is not None, "checked when the protocol was made"
    return shots


def classes(task: Task) -> int:
    assert task.kind.classes is not None, "checked when the configuration was made"
    return task.kind.classes


def tested(task: Task) -> str:
    """The split whose labelled examples are test."""
    return "test" if has_test(task) else "dev"


def has_test(task: Task) -> bool:
    """Whether dev and test with labels are held out already."""
    source = task.source
    while isinstance(source, Joined | FirstClasses):
        source = source.source
    return isinstance(source, Parted)
