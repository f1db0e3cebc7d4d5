"""Built-in tasks as their users set them: heads, losses, how pairs are read.

No torch is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import new_class
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from common.errors import UserError
from common.settings import Settings, setting

if TYPE_CHECKING:
    from tasks.base import Task

Pair = Literal["bi", "joint"]
CLASSES = "train on the first N classes only"
PAIR = "encode each text of a pair by itself (bi), or both as one sequence (joint)"


class TaskOptions(Settings):
    """A task by its name, and what may be chosen about it.

    `similarity`: it predicts a number, not a class. `texts` is how many an example has.
    """

    similarity: ClassVar[bool] = False
    texts: ClassVar[int] = 1

    def build(self) -> Task:
        """What is read, learnt and scored."""
        raise UserError(f"task {self.name}: expected build")

    @property
    def objectives(self) -> tuple[str, ...]:
        """Names of what is minimised, as `Task.objectives` of the built task gives them."""
        return (self.name,)

    @property
    def vectors(self) -> int:
        """Embeddings of an example: one where the texts of a pair are one sequence."""
        return 1 if getattr(self, "pair", "bi") == "joint" else self.texts


class SST(TaskOptions, name="sst"):
    """Sentiment of a sentence in five classes (Stanford Sentiment Treebank)."""

    head: Literal["hidden", "softmax"] = setting(
        "hidden", help="head of sst: BEES' M4 (hidden), or its baseline M1"
    )

    def build(self) -> Task:
        from tasks.cs224n import sst

        return sst(self.head)


class QQP(TaskOptions, name="qqp"):
    """Whether two questions ask the same (Quora question pairs)."""

    texts = 2
    head: Literal["difference", "concat"] = setting(
        "difference", help="head of qqp: BEES' M5 (difference), or its baseline M2"
    )
    loss: Literal["cross-entropy", "with-contrastive"] = setting(
        "cross-entropy", help="loss of qqp: with the contrastive one as an objective of its own"
    )
    pair: Pair = setting("bi", help=PAIR, shared=True)

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and (self.head != "difference" or self.loss != "cross-entropy"):
            yield "task_options: qqp: pair joint: expected neither head nor loss beside it"

    def build(self) -> Task:
        from tasks.cs224n import qqp

        return qqp(self.head, self.loss, self.pair)

    @property
    def objectives(self) -> tuple[str, ...]:
        if self.loss == "cross-entropy":
            return (self.name,)
        return (f"{self.name}/cross_entropy", f"{self.name}/contrastive")


class STS(TaskOptions, name="sts"):
    """Similarity of two sentences from 0 to 5 (semantic textual similarity)."""

    similarity, texts = True, 2
    head: Literal["hidden", "cosine"] = setting(
        "hidden", help="head of sts: BEES' M6 (hidden), or its baseline M3"
    )
    activation: Literal["relu", "sigmoid", "none"] = setting(
        "relu", help="activation of sts's cosine (BEES, Table 4)"
    )

    def build(self) -> Task:
        from tasks.cs224n import sts

        return sts(self.head, self.activation)


def table_task(name: str, texts: int, classes: int, make: Callable[..., Task]) -> type[TaskOptions]:
    """The class of a task that is a line of a table, of texts with `classes` classes.

    `make` builds it from its options: `pair` where it has two texts, `classes` where it has more
    than two of them.
    """
    base = SHAPES[texts == 2, classes > 2]
    body = {
        "texts": texts,
        "most_classes": classes,
        "build": lambda self: make(name, **chosen(self)),
        "faults": class_faults,
        "__doc__": f"{name}: {classes} classes of {'pairs of texts' if texts == 2 else 'texts'}.",
    }
    return new_class(name, (base,), {"name": name}, lambda space: space.update(body))


class OfPairs(TaskOptions):
    """A task of pairs of texts."""

    pair: Pair = setting("bi", help=PAIR, shared=True)


class OfClasses(TaskOptions):
    """A task of more than two classes."""

    classes: str | None = setting(None, help=CLASSES, metavar="N", shared="all")


class OfPairsAndClasses(OfPairs, OfClasses):
    """A task of pairs of texts and more than two classes."""


# By whether a task has pairs, and more than two classes.
SHAPES: dict[tuple[bool, bool], type[TaskOptions]] = {
    (False, False): TaskOptions,
    (True, False): OfPairs,
    (False, True): OfClasses,
    (True, True): OfPairsAndClasses,
}


def chosen(options: TaskOptions) -> dict[str, Any]:
    """Options that are set."""
    return {key: value for key, value in options.values().items() if value is not None}


def class_faults(options: Any) -> Iterator[str]:
    """A number of classes that a task does not have."""
    found, most = getattr(options, "classes", None), options.most_classes
    if found is not None and found not in map(str, range(2, most + 1)):
        yield f"classes: expected a whole number from 2 to {most}, found {found!r}"
