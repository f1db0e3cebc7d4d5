"""The built-in tasks by name: those of BEES, paraphrase types, and the data sets of the catalog."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from common.settings import setting
from tasks import kinds
from tasks.base import PAIR_HELP, Pair, Task, TaskOptions
from tasks.catalog import DATA_SETS, CatalogTask, softmax_task
from tasks.predictions import PredictionFile, class_file
from tasks.readers import (
    LabelledFiles,
    Parser,
    class_parser,
    clean_pair_text,
    clean_sentence,
    number_parser,
)
from tasks.splits import shares, split_file

STARS = ("very negative", "negative", "neutral", "positive", "very positive")
STS_SCALE = 5.0
PAIR = ("sentence1", "sentence2")
PARAPHRASE_TYPES = tuple(n for n in range(1, 32) if n not in (12, 19, 20, 23, 27))


def course_files(
    stems: tuple[str, ...],
    texts: tuple[str, ...],
    label: str,
    parse_label: Parser,
    test: str = "test-student",
) -> LabelledFiles:
    """Return the files of a task with the names of CS224N, or else those of Göttingen's course."""
    names = {"train": "train", "dev": "dev", "test": test}
    return LabelledFiles(
        files=tuple({s: f"{stem}-{name}.csv" for s, name in names.items()} for stem in stems),
        text_columns=texts,
        label_columns=(label,),
        parse_label=parse_label,
        clean_text=clean_sentence if len(texts) == 1 else clean_pair_text,
    )


class SST(TaskOptions, name="sst"):
    """Sentiment of a sentence in five classes (Stanford Sentiment Treebank)."""

    head: Literal["hidden", "softmax"] = setting(
        "hidden", help="head of sst: BEES' M4 (hidden), or its baseline M1 (softmax)"
    )

    def build(self) -> Task:
        from tasks import heads

        classes = len(STARS)
        head = heads.HiddenClassifier if self.head == "hidden" else heads.SoftmaxClassifier
        return Task(
            name="sst",
            kind=kinds.classification(classes, names=STARS),
            source=course_files(
                ("ids-sst", "sst-sentiment"), ("sentence",), "sentiment", class_parser(classes)
            ),
            build_head=partial(head, classes=classes),
            output=class_file("sst", "Predicted_Sentiment", classes),
        )


class QQP(TaskOptions, name="qqp"):
    """Whether two questions have the same meaning (Quora question pairs).

    With `pair` "joint" the head is a softmax layer.
    """

    head: Literal["difference", "concat"] = setting(
        "difference", help="head of qqp: BEES' M5 (difference), or its baseline M2 (concat)"
    )
    pair: Pair = setting("bi", help=PAIR_HELP, shared=True)

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and self.head != "difference":
            yield "qqp: pair joint: expected no head with it"

    def build(self) -> Task:
        from tasks import heads

        joint, show = self.pair == "joint", lambda value: str(float(value))
        pairs = partial(heads.PairClassifier, classes=2, difference=self.head == "difference")
        return Task(
            name="qqp",
            kind=kinds.classification(2, names=("different questions", "the same question")),
            source=course_files(
                ("quora", "quora-paraphrase"), PAIR, "is_duplicate", class_parser(2)
            ),
            build_head=partial(heads.SoftmaxClassifier, classes=2) if joint else pairs,
            output=PredictionFile("para", "Predicted_Is_Paraphrase", show, class_parser(2)),
            texts=2,
            joint=joint,
        )


class STS(TaskOptions, name="sts"):
    """Similarity of two sentences from 0 to 5 (semantic textual similarity).

    The activation is applied to the cosine: `relu` as in BEES, section 6, where `sigmoid` is its
    Table 4. With `pair` "joint" the head is a regression on the embedding of both sentences.
    """

    head: Literal["hidden", "cosine"] = setting(
        "hidden", help="head of sts: BEES' M6 (hidden), or its baseline M3 (cosine)"
    )
    activation: Literal["relu", "sigmoid", "none"] = setting(
        "relu", help="activation of sts's cosine (BEES, Table 4)"
    )
    pair: Pair = setting("bi", help=PAIR_HELP, shared=True)

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and (self.head != "hidden" or self.activation != "relu"):
            yield "sts: pair joint: expected neither head nor activation with it"

    def build(self) -> Task:
        from tasks import heads

        scale, joint = STS_SCALE, self.pair == "joint"
        cosine = partial(
            heads.CosineSimilarity,
            scale=scale,
            hidden=self.head == "hidden",
            activation=self.activation,
        )
        return Task(
            name="sts",
            kind=kinds.similarity(scale),
            source=course_files(
                ("sts", "sts-similarity"), PAIR, "similarity", number_parser(0, scale)
            ),
            build_head=partial(heads.JointSimilarity, scale=scale) if joint else cosine,
            output=PredictionFile("sts", "Predicted_Similiary", str, number_parser(), (0, scale)),
            joint=joint,
            texts=2,
        )


class CFIMDB(TaskOptions, name="cfimdb"):
    """Sentiment of a long movie review, in the files of CS224N."""

    def build(self) -> Task:
        files = course_files(("ids-cfimdb",), ("sentence",), "sentiment", class_parser(2))
        kind = kinds.classification(2, names=("negative", "positive"))
        return softmax_task("cfimdb", kind, files, "Predicted_Sentiment")


class ETPC(TaskOptions, name="etpc"):
    """The types of a paraphrase, several per pair (Kovatchev et al., 2018), from M.Inf.2202.

    The files have a list such as `[2, 29, 29]` per pair, where 0 fills up. These are the types 1 to
    31 of the corpus without five unused ones. Without a file for dev, a tenth of train is dev, as
    in the course. The head is that of pairs (BEES' M5) with a sigmoid per type.
    """

    def build(self) -> Task:
        from tasks import heads

        numbers, column = PARAPHRASE_TYPES, "paraphrase_type_ids"
        count, names = len(numbers), tuple(f"type {number}" for number in numbers)

        def parse(label: str) -> tuple[float, ...] | None:
            found = {*label.strip("[]").replace(" ", "").split(",")} - {"", "0"}
            if found - {*map(str, numbers)}:
                raise ValueError(f"expected a list of types from 1 to {numbers[-1]}, as in [2, 5]")
            return tuple(float(str(one) in found) for one in numbers) if label else None

        files = course_files(
            *(("etpc-paraphrase",), PAIR, column, parse), test="detection-test-student"
        )
        (every,) = files.files
        without_dev = {**every, "dev": every["train"]}
        return Task(
            name="etpc",
            kind=kinds.multi_label(count, names),
            source=split_file(replace(files, files=(every, without_dev)), shares),
            build_head=partial(heads.PairClassifier, classes=count, difference=True),
            output=PredictionFile(
                "etpc-paraphrase-detection",
                "Predicted_Paraphrase_Types",
                show=lambda values: str([int(value) for value in values]),
                parse=json.loads,
                commas=True,
            ),
            texts=2,
        )


CS224N = ("sst", "qqp", "sts")  # the tasks of BEES, which are the default
# Tasks whose labels say which pairs have the same meaning: the lowest label of those.
SAME_MEANING = {"qqp": 1, "sts": 4.0}
TASKS: dict[str, type[TaskOptions]] = {
    **{one.name: one for one in (SST, QQP, STS, CFIMDB)},
    **{
        name: type(name, (CatalogTask,), {"row": row, "__doc__": row.about(name)}, name=name)
        for name, row in DATA_SETS.items()
    },
    ETPC.name: ETPC,
}
TASK_NAMES = tuple(TASKS)
WITH_CLASSES = tuple(name for name in TASKS if name not in ("sts", "etpc"))
# Tasks whose pairs of texts may be encoded as one sequence.
PAIRS = ("qqp", "sts", *(name for name, row in DATA_SETS.items() if row.pairs))


def build_task(name: str, **options: Any) -> Task:
    """Return a built-in task with its options, such as `head` and, for sts, `activation`."""
    return TASKS[name](**options).build()
