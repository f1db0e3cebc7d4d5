"""Which labelled examples are train, dev and test: protocols by their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tasks.base import Task
from tasks.filtered import FirstClasses, Joined, WithoutHeldOut
from tasks.labelled_files import Source
from tasks.parting import Parted
from tasks.sampled import Capped, Even
from tasks.subsets import FewShot, HeldOut


@dataclass(frozen=True)
class Drawing:
    """What a run draws: `shots` examples, of a class or in all, and how uneven the classes are.

    `others` are tasks whose dev and test texts are left out of train, as a task's own are; None
    leaves no text out.
    """

    protocol: str = "files"
    shots: int | None = None
    imbalance: float | None = None
    seed: int = 0
    others: tuple[Source, ...] | None = None


def source_of(task: Task, drawing: Drawing) -> Source:
    """A task's files, or what protocol and leak guard make of them."""
    make = PROTOCOLS[drawing.protocol]
    if drawing.protocol in GUARDED_FIRST:
        return make(guarded(task.source, drawing), task, drawing)
    return guarded(make(task.source, task, drawing), drawing)


def guarded(source: Source, drawing: Drawing) -> Source:
    return source if drawing.others is None else WithoutHeldOut(source, drawing.others)


def files(source: Source, task: Task, drawing: Drawing) -> Source:
    return source


def held_out(source: Source, task: Task, drawing: Drawing) -> Source:
    return source if has_test(task) else HeldOut(source)


def few_shot(source: Source, task: Task, drawing: Drawing) -> Source:
    test = "test" if has_test(task) else None
    return FewShot(source, *numbers(task, drawing), test, names=task.kind.class_names)


def capped(source: Source, task: Task, drawing: Drawing) -> Source:
    return Capped(source, *numbers(task, drawing), test=tested(task))


def even(source: Source, task: Task, drawing: Drawing) -> Source:
    """With imbalance the rarest class alone has that few."""
    ratio, names = drawing.imbalance or 1.0, task.kind.class_names
    return Even(source, *numbers(task, drawing), ratio, test=tested(task), names=names)


def numbers(task: Task, drawing: Drawing) -> tuple[int, int, int]:
    """Shots, classes, seed."""
    assert drawing.shots is not None
    assert task.kind.classes is not None
    return drawing.shots, task.kind.classes, drawing.seed


def tested(task: Task) -> str:
    """The split whose labelled examples are test."""
    return "test" if has_test(task) else "dev"


def has_test(task: Task) -> bool:
    """Whether dev and test with labels are held out already."""
    source = task.source
    while isinstance(source, Joined | FirstClasses):
        source = source.source
    return isinstance(source, Parted)


PROTOCOLS: dict[str, Callable[[Source, Task, Drawing], Source]] = {
    "files": files,
    "few-shot": few_shot,
    "held-out": held_out,
    "capped": capped,
    "few-a-class": even,
    "imbalanced": even,
}
# Or there would be fewer shots. Of the others dev is a part of train, in which texts come twice.
GUARDED_FIRST = ("few-shot",)
