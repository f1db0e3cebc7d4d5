"""The data sets of GLUE, CLUE, reviews and topics, from the table in catalog.toml.

Files are in `--data DIR`; those of GLUE and CLUE may also be in its folder `glue`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from common.settings import setting
from tasks import kinds
from tasks.base import PAIR_HELP, Pair, Task, TaskOptions
from tasks.csv_files import Layout
from tasks.predictions import class_file
from tasks.readers import LabelledFiles, Source, class_parser
from tasks.splits import shares, split_file

DROPOUT = 0.1  # before the softmax layer: Moukafih et al. (2022), section 4.1


@dataclass(frozen=True)
class DataSet:
    """A row of the table: files, columns and classes of a data set.

    `labels` has the labels of each class in the files, with `|` between spellings; `names` are
    readable names, for labels that are not. `header` names the columns of files without a header
    line. Without `dev`, a tenth of train is dev. `test` is a labelled file, or the share of train
    that is held out for test. Two texts of a row with `joined` are one, such as title and body.
    """

    train: str
    texts: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    dev: str | None = None
    test: str | float | None = None
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
    joined: bool = False
    column: str = "Predicted_Label"

    @property
    def pairs(self) -> bool:
        return len(self.texts) == 2 and not self.joined

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return readable names of the classes; none if there are only numbers."""
        if self.names or any(label.isdigit() for label in self.labels):
            return self.names
        return tuple(label.replace("_", " ") for label in self.labels)

    def about(self, name: str) -> str:
        return f"{name}: {len(self.labels)} classes of {'pairs of texts' * self.pairs or 'texts'}."

    def source(self) -> Source:
        whole, share = self.dev is None, self.test if isinstance(self.test, float) else None
        files = {"train": self.train, "dev": self.dev or self.train}
        if whole:
            files["test"] = self.test if isinstance(self.test, str) else self.train
        in_glue = {split: f"glue/{file}" for split, file in files.items()}
        spellings = {s: n for n, label in enumerate(self.labels) for s in label.split("|")}
        source = LabelledFiles(
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
        return split_file(source, partial(shares, test=share)) if whole else source


def clean_review(text: str) -> str:
    """Replace line breaks, written as two characters or as HTML, and spaces by single spaces."""
    return " ".join(text.replace("\\n", " ").replace("<br />", " ").split())


class CatalogTask(TaskOptions):
    """A data set of the catalog, with a softmax layer on the embedding of a text.

    Pairs are encoded separately, with BEES' head for pairs (`bi`), or as one sequence
    `[CLS] a [SEP] b [SEP]` with the softmax layer (`joint`).
    """

    row: ClassVar[DataSet]
    pair: Pair = setting("bi", help=PAIR_HELP, shared=True)

    def faults(self) -> Iterator[str]:
        if self.pair == "joint" and not self.row.pairs:
            yield f"pair: joint needs pairs of texts, which {self.name} does not have"

    def build(self) -> Task:
        row, joint = self.row, self.pair == "joint"
        kind = kinds.classification(len(row.labels), row.dev is not None, row.class_names)
        return softmax_task(self.name, kind, row.source(), row.column, 1 + row.pairs, joint)


def softmax_task(
    name: str, kind: kinds.Kind, source: Source, column: str, texts: int = 1, joint: bool = False
) -> Task:
    """Return a task with cross-entropy on a softmax layer, or on BEES' head for pairs."""
    from tasks import heads

    classes = len(kind.names)
    head: Any = partial(heads.SoftmaxClassifier, classes=classes, dropout=DROPOUT)
    if texts == 2 and not joint:
        head = partial(heads.PairClassifier, classes=classes, difference=True)
    output = class_file(name, column, classes)
    return Task(name, kind, source, head, output, joint=joint, texts=texts)


TABLE: Mapping[str, Mapping[str, object]] = tomllib.loads(
    Path(__file__).with_name("catalog.toml").read_text("utf-8")
)
DATA_SETS = {
    name: msgspec.convert(row, DataSet) for group in TABLE.values() for name, row in group.items()
}
