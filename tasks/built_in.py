"""The built-in tasks by name: those of BEES, paraphrase types, and the rows of catalog.toml.

Their files are in `--data DIR`; those of GLUE and CLUE may also be in its folder `glue`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from common.settings import setting
from tasks import kinds
from tasks.base import Pair, Task, TaskOptions, lazy_head
from tasks.csv_files import Layout
from tasks.predictions import PredictionFile
from tasks.readers import LabelledFiles, Parser, class_parser, clean_pair_text, number_parser
from tasks.splits import shares, split_file

STARS = ("very negative", "negative", "neutral", "positive", "very positive")
PAIR = ("sentence1", "sentence2")
DROPOUT = 0.1  # before the softmax layer: Moukafih et al. (2022), section 4.1


def course_files(
    stems: tuple[str, ...], label: str, parse: Parser, texts: tuple[str, ...] = PAIR
) -> LabelledFiles:
    """Return the files of a task with the names of CS224N, or else those of Göttingen's course."""
    names = {"train": "train", "dev": "dev", "test": "test-student"}
    return LabelledFiles(
        files=tuple({s: f"{stem}-{name}.csv" for s, name in names.items()} for stem in stems),
        text_columns=texts,
        label_columns=(label,),
        parse_label=parse,
        clean_text=clean_pair_text if len(texts) == 2 else lambda text: text.lower().strip(),
    )


class PairTask(TaskOptions):
    """A task whose pairs of texts are two sequences or, with a head for these, one."""

    pair: Pair = setting(
        "bi",
        help="encode the texts of a pair separately (bi) or as one sequence (joint)",
        shared=True,
    )

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and (others := [*self.to_json()][2:]):
            yield f"{self.name}: pair joint has a head of its own, and no {' or '.join(others)}"


class SST(TaskOptions, name="sst"):
    """Sentiment of a sentence in five classes (Stanford Sentiment Treebank)."""

    head: Literal["hidden", "softmax"] = setting(
        "hidden", help="head of sst: BEES' M4 (hidden), or its baseline M1 (softmax)"
    )

    def build(self) -> Task:
        stems, text = ("ids-sst", "sst-sentiment"), ("sentence",)
        files = course_files(stems, "sentiment", class_parser(5), text)
        chosen = "HiddenClassifier" if self.head == "hidden" else "SoftmaxClassifier"
        output = PredictionFile("sst", "Predicted_Sentiment")
        kind = kinds.classification(5, names=STARS)
        return Task("sst", kind, files, lazy_head(chosen, classes=5), output)


class QQP(PairTask, name="qqp"):
    """Whether two questions have the same meaning (Quora question pairs)."""

    head: Literal["difference", "concat"] = setting(
        "difference", help="head of qqp: BEES' M5 (difference), or its baseline M2 (concat)"
    )

    def build(self) -> Task:
        joint = self.pair == "joint"
        files = course_files(("quora", "quora-paraphrase"), "is_duplicate", class_parser(2))
        of_two = lazy_head("PairClassifier", classes=2, difference=self.head == "difference")
        build_head = lazy_head("SoftmaxClassifier", classes=2) if joint else of_two
        kind = kinds.classification(2, names=("different questions", "the same question"))
        column = "Predicted_Is_Paraphrase"
        output = PredictionFile("para", column, lambda value: str(float(value)))
        return Task("qqp", kind, files, build_head, output, joint=joint, texts=2)


class STS(PairTask, name="sts"):
    """Similarity of two sentences from 0 to 5 (semantic textual similarity).

    The activation of the cosine is `relu` in BEES, section 6, `sigmoid` in its Table 4. With `pair`
    "joint" the head is a regression on the embedding of both sentences.
    """

    head: Literal["hidden", "cosine"] = setting(
        "hidden", help="head of sts: BEES' M6 (hidden), or its baseline M3 (cosine)"
    )
    activation: Literal["relu", "sigmoid", "none"] = setting(
        "relu", help="activation of sts's cosine (BEES, Table 4)"
    )

    def build(self) -> Task:
        scale, joint = 5.0, self.pair == "joint"
        files = course_files(("sts", "sts-similarity"), "similarity", number_parser(0, scale))
        given = {"hidden": self.head == "hidden", "activation": self.activation}
        of_two = lazy_head("CosineSimilarity", scale=scale, **given)
        build_head = lazy_head("JointSimilarity", scale=scale) if joint else of_two
        output = PredictionFile("sts", "Predicted_Similiary", str, (0, scale))
        return Task("sts", kinds.similarity(scale), files, build_head, output, joint=joint, texts=2)


class CFIMDB(TaskOptions, name="cfimdb"):
    """Sentiment of a long movie review, in the files of CS224N."""

    def build(self) -> Task:
        files = course_files(("ids-cfimdb",), "sentiment", class_parser(2), ("sentence",))
        kind = kinds.classification(2, names=("negative", "positive"))
        build_head = lazy_head("SoftmaxClassifier", classes=2, dropout=DROPOUT)
        output = PredictionFile("cfimdb", "Predicted_Sentiment")
        return Task("cfimdb", kind, files, build_head, output)


class ETPC(TaskOptions, name="etpc"):
    """The types of a paraphrase, several per pair (Kovatchev et al., 2018), from M.Inf.2202.

    The files have a list such as `[2, 29, 29]` per pair, where 0 fills up; five types are unused.
    Without a file for dev, a tenth of train is dev, as in the course.
    """

    def build(self) -> Task:
        numbers = [n for n in range(1, 32) if n not in (12, 19, 20, 23, 27)]

        def parse(label: str) -> tuple[float, ...] | None:
            found = {*label.strip("[]").replace(" ", "").split(",")} - {"", "0"}
            if found - {*map(str, numbers)}:
                raise ValueError(f"expected a list of types from 1 to {numbers[-1]}, as in [2, 5]")
            return tuple(float(str(one) in found) for one in numbers) if label else None

        stem = "etpc-paraphrase"
        names = {"train": f"{stem}-train.csv", "test": f"{stem}-detection-test-student.csv"}
        files = tuple({**names, "dev": f"{stem}-{dev}.csv"} for dev in ("dev", "train"))
        source = replace(course_files((), "paraphrase_type_ids", parse), files=files)
        output = PredictionFile(
            "etpc-paraphrase-detection",
            "Predicted_Paraphrase_Types",
            lambda values: str([int(value) for value in values]),
            commas=True,
        )
        kind = kinds.multi_label(len(numbers), tuple(f"type {number}" for number in numbers))
        build_head = lazy_head("PairClassifier", classes=len(numbers), difference=True)
        return Task("etpc", kind, split_file(source, shares), build_head, output, texts=2)


class CatalogTask(PairTask):
    """A row of catalog.toml: a data set with its files, columns and classes.

    `labels` has the labels of each class in the files, with `|` between spellings; `names` are
    readable names, for labels that are not. `header` names the columns of files without a header
    line. Without `dev`, a tenth of train is dev. `test` is a labelled file, or the share of train
    that is held out for test. Two texts of a row with `joined` are one, such as title and body.

    The head is a softmax layer on the embedding of a text, or of a pair that is one sequence
    (`joint`). That of two sequences (`bi`) is BEES' head for pairs.
    """

    train: ClassVar[str]
    texts: ClassVar[tuple[str, ...]]
    label: ClassVar[str]
    labels: ClassVar[tuple[str, ...]]
    dev: ClassVar[str | None] = None
    test: ClassVar[str | float | None] = None
    header: ClassVar[tuple[str, ...] | None] = None
    names: ClassVar[tuple[str, ...]] = ()
    joined: ClassVar[bool] = False
    column: ClassVar[str] = "Predicted_Label"

    @property
    def pairs(self) -> bool:
        return len(self.texts) == 2 and not self.joined

    def build(self) -> Task:
        whole, share = self.dev is None, self.test if isinstance(self.test, float) else None
        files = {"train": self.train, "dev": self.dev or self.train}
        if whole:
            files["test"] = self.test if isinstance(self.test, str) else self.train
        in_glue = {split: f"glue/{file}" for split, file in files.items()}
        spellings = {s: n for n, label in enumerate(self.labels) for s in label.split("|")}
        source: Any = LabelledFiles(
            files=(files,) if whole else (in_glue, files),
            text_columns=self.texts,
            label_columns=(self.label,),
            parse_label=class_parser(spellings),
            clean_text=clean_review if whole else str.strip,
            id_column=None,
            layout=Layout(quotes=not self.train.endswith(".tsv"), header=self.header or True),
            labelled_test=whole,
            joined=self.joined,
        )
        source = split_file(source, partial(shares, test=share)) if whole else source
        classes, joint, names = len(self.labels), self.pair == "joint", self.names
        if not any(label.isdigit() for label in self.labels):  # else there are only numbers
            names = names or tuple(label.replace("_", " ") for label in self.labels)
        build_head = lazy_head("SoftmaxClassifier", classes=classes, dropout=DROPOUT)
        if self.pairs and not joint:
            build_head = lazy_head("PairClassifier", classes=classes, difference=True)
        kind = kinds.classification(classes, not whole, names)
        output = PredictionFile(self.name, self.column)
        texts = 1 + self.pairs
        return Task(self.name, kind, source, build_head, output, joint=joint, texts=texts)


def clean_review(text: str) -> str:
    """Replace line breaks, written as two characters or as HTML, and spaces by single spaces."""
    return " ".join(text.replace("\\n", " ").replace("<br />", " ").split())


TABLE: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("catalog.toml").read_text("utf-8")
)
DATA_SETS: dict[str, type[CatalogTask]] = {}
for group in TABLE.values():
    for name, row in group.items():
        given = {key: tuple(one) if isinstance(one, list) else one for key, one in row.items()}
        DATA_SETS[name] = type(name, (CatalogTask,), given, name=name)
CS224N = ("sst", "qqp", "sts")  # the tasks of BEES, which are the default
# Tasks whose labels say which pairs have the same meaning: the lowest label of those.
SAME_MEANING = {"qqp": 1, "sts": 4.0}
TASKS: dict[str, type[TaskOptions]] = {
    **{one.name: one for one in (SST, QQP, STS, CFIMDB)},
    **DATA_SETS,
    "etpc": ETPC,
}
TASK_NAMES = tuple(TASKS)
WITH_CLASSES = tuple(name for name in TASKS if name not in ("sts", "etpc"))


def build_task(name: str, **options: Any) -> Task:
    """Return a built-in task with its options, such as `head` and, for sts, `activation`."""
    return TASKS[name](**options).build()
