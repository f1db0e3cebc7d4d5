"""The built-in tasks with their options, by name."""

from __future__ import annotations

from collections.abc import Iterator
from types import new_class
from typing import Any, ClassVar, Literal

from common.errors import UserError
from common.settings import Settings, hints_of_fields, setting
from tasks import catalog
from tasks.base import Task
from tasks.catalog import DECLARED

Pair = Literal["bi", "joint"]
TargetType = Literal["class", "similarity", "number", "labels"]  # of an example
CLASSES_HELP = "train on the first N classes only"
PAIR_HELP = "encode the texts of a pair separately (bi) or as one sequence (joint)"


class TaskOptions(Settings):
    """A built-in task and its options.

    `predicts` says what an example has: one class, a similarity, another number, or several labels.
    `texts` is the number of its texts, and `main_metric` selects the best epoch.
    """

    predicts: ClassVar[TargetType] = "class"
    main_metric: ClassVar[str] = "accuracy"
    texts: ClassVar[int] = 1

    def __init_subclass__(cls, *, name: str = "", **more: Any) -> None:
        super().__init_subclass__(name=name, prefix=name and f"{name}_", **more)

    def build(self) -> Task:
        """Return the task with these options."""
        raise UserError(f"task {self.name}: expected a method build, found none")

    @property
    def objectives(self) -> tuple[str, ...]:
        """Return the names of the objectives, as in `Task.objectives` of the built task."""
        return (self.name,)

    @property
    def has_classes(self) -> bool:
        """Return whether each example has one class, not a number or several labels."""
        return self.predicts == "class"

    @property
    def has_columns(self) -> bool:
        """Return whether each example has one class or several labels, not a number."""
        return self.predicts in ("class", "labels")

    @property
    def joint(self) -> bool:
        """Return whether the examples are pairs that are encoded as one sequence."""
        return getattr(self, "pair", "bi") == "joint"

    @property
    def vectors(self) -> int:
        """Return the number of embeddings of an example: one for pairs in one sequence."""
        return 1 if self.joint else self.texts


class SST(TaskOptions, name="sst"):
    """Sentiment of a sentence in five classes (Stanford Sentiment Treebank)."""

    head: Literal["hidden", "softmax"] = setting(
        "hidden", help="head of sst: BEES' M4 (hidden), or its baseline M1 (softmax)"
    )

    def build(self) -> Task:
        from tasks.built_in import sst

        return sst(self.head)


class QQP(TaskOptions, name="qqp"):
    """Whether two questions have the same meaning (Quora question pairs)."""

    texts = 2
    head: Literal["difference", "concat"] = setting(
        "difference", help="head of qqp: BEES' M5 (difference), or its baseline M2 (concat)"
    )
    loss: Literal["cross-entropy", "with-contrastive"] = setting(
        "cross-entropy", help="loss of qqp, optionally with a separate contrastive objective"
    )
    pair: Pair = setting("bi", help=PAIR_HELP, shared=True)

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and (self.head != "difference" or self.loss != "cross-entropy"):
            yield "task_options: qqp: pair joint: expected neither head nor loss with it"

    def build(self) -> Task:
        from tasks.built_in import qqp

        return qqp(self.head, self.loss, self.pair)

    @property
    def objectives(self) -> tuple[str, ...]:
        if self.loss == "cross-entropy":
            return (self.name,)
        return (f"{self.name}/cross_entropy", f"{self.name}/contrastive")


class STS(TaskOptions, name="sts"):
    """Similarity of two sentences from 0 to 5 (semantic textual similarity)."""

    predicts, main_metric, texts = "similarity", "pearson", 2
    head: Literal["hidden", "cosine"] = setting(
        "hidden", help="head of sts: BEES' M6 (hidden), or its baseline M3 (cosine)"
    )
    activation: Literal["relu", "sigmoid", "none"] = setting(
        "relu", help="activation of sts's cosine (BEES, Table 4)"
    )
    pair: Pair = setting("bi", help=PAIR_HELP, shared=True)

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and (self.head != "hidden" or self.activation != "relu"):
            yield "task_options: sts: pair joint: expected neither head nor activation with it"

    def build(self) -> Task:
        from tasks.built_in import sts

        return sts(self.head, self.activation, self.pair)


class ETPC(TaskOptions, name="etpc"):
    """The types of a paraphrase, several per pair (Göttingen's M.Inf.2202)."""

    predicts, main_metric, texts = "labels", "micro_f1", 2
    types: Literal["26", "7"] = setting(
        "26", help="version of etpc: the 26 types of 2025, or the 7 of 2024"
    )

    def build(self) -> Task:
        from tasks.paraphrase_types import etpc

        return etpc(self.types)


class CatalogTask(TaskOptions):
    """A task from a table of the catalog."""

    most_classes: ClassVar[int]

    def build(self) -> Task:
        from tasks.built_in import CATALOG

        options = {key: value for key, value in vars(self).items() if value is not None}
        return CATALOG[self.name](**options)

    def faults(self) -> Iterator[str]:
        found, most = getattr(self, "classes", None), self.most_classes
        if found is not None and found not in map(str, range(2, most + 1)):
            yield f"classes: expected a whole number from 2 to {most}, found {found!r}"


class PairTask(CatalogTask):
    """A task on pairs of texts."""

    pair: Pair = setting("bi", help=PAIR_HELP, shared=True)


class MultiClassTask(CatalogTask):
    """A task with more than two classes."""

    classes: str | None = setting(None, help=CLASSES_HELP, metavar="N", shared="all")


class MultiClassPairTask(PairTask, MultiClassTask):
    """A task on pairs of texts with more than two classes."""


# Keys: whether a task has pairs, and more than two classes.
SHAPES: dict[tuple[bool, bool], type[CatalogTask]] = {
    (False, False): CatalogTask,
    (True, False): PairTask,
    (False, True): MultiClassTask,
    (True, True): MultiClassPairTask,
}


def catalog_task(name: str, texts: int, classes: int) -> type[CatalogTask]:
    """Return the options class of a task of the catalog."""
    text = f"{name}: {classes} classes of {'pairs of texts' if texts == 2 else 'texts'}."
    body = {"texts": texts, "most_classes": classes, "__doc__": text}
    base = SHAPES[texts == 2, classes > 2]
    return new_class(name, (base,), {"name": name}, lambda space: space.update(body))


CS224N = ("sst", "qqp", "sts")  # the tasks of BEES, which are the default
# Tasks whose labels say which pairs have the same meaning: the lowest label of those.
SAME_MEANING = {"qqp": 1, "sts": 4.0}
REVIEW_CLASSES = {"cfimdb": 2, **{name: len(one.names) for name, one in catalog.REVIEWS.items()}}
CLASSES = {name: len(one.labels) for name, one in DECLARED.items()} | REVIEW_CLASSES
# Tasks that may be restricted to their first classes.
MANY_CLASSES = {name: classes for name, classes in CLASSES.items() if classes > 2}
# Objectives of a task with separate contrastive terms (SCL-MOO).
PULL_PUSH = ("cross_entropy", "pull", "push")
TASKS: dict[str, type[TaskOptions]] = {
    **{one.name: one for one in (SST, QQP, STS)},
    **{name: catalog_task(name, len(d.texts), len(d.labels)) for name, d in DECLARED.items()},
    **{name: catalog_task(name, 1, classes) for name, classes in REVIEW_CLASSES.items()},
    ETPC.name: ETPC,
}
TASK_NAMES = tuple(TASKS)
# Tasks whose pairs of texts may be encoded as one sequence.
PAIRS = tuple(name for name, task in TASKS.items() if "pair" in hints_of_fields(task))


def build_task(name: str, **options: str) -> Task:
    """Return a built-in task with its options, such as `head` and, for sts, `activation`."""
    return TASKS[name](**options).build()
