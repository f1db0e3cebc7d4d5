"""Tasks built from the tables of the catalog.

Reviews are read row by row, and only the rows in use are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from torch import nn

from tasks.base import Task, classification
from tasks.catalog import DECLARED, MOODS, PAIRS, REVIEWS, TOPICS, Declared
from tasks.cs224n import cs224n_files
from tasks.heads import PairClassifier, SoftmaxClassifier
from tasks.labelled_files import LabelledFiles, Source
from tasks.predictions import class_file
from tasks.readers import class_label, clean_sentence, named_label, spelled_label
from tasks.splits import PartedSource, first_classes, joined_texts

PAIR_OPTIONS = ("bi", "joint")
DROPOUT = 0.1  # before the softmax layer: Moukafih et al. (2022), section 4.1


def declared_task(name: str, pair: str = PAIR_OPTIONS[0], classes: str | None = None) -> Task:
    """Return a task of GLUE or CLUE with a softmax layer on the embedding of a sentence.

    Pairs are encoded separately, with BEES' head for pairs (`bi`), or as one sequence
    `[CLS] a [SEP] b [SEP]` with the softmax layer (`joint`). `classes` keeps only the first ones.
    """
    declared = DECLARED[name]
    count, joint = int(classes or len(declared.labels)), pair == "joint"
    head: Callable[[int], nn.Module] = partial(SoftmaxClassifier, classes=count, dropout=DROPOUT)
    if name in PAIRS and not joint:
        head = partial(PairClassifier, classes=count, difference=True)
    names = declared.names
    if not names and not any(label.isdigit() for label in declared.labels):
        names = tuple(label.replace("_", " ") for label in declared.labels)
    return Task(
        name=name,
        kind=classification(count, matthews=True, names=names[:count]),
        source=source_of(declared, count),
        build_head=head,
        output=class_file(name, "Predicted_Label", count),
        joint=joint and name in PAIRS,
        texts=len(declared.texts),
    )


def source_of(declared: Declared, count: int) -> Source:
    """Return the files of a task, restricted to its first `count` classes."""
    files = LabelledFiles(
        files={
            "train": f"{declared.folder}/{declared.train}",
            "dev": f"{declared.folder}/{declared.dev}",
        },
        text_columns=declared.texts,
        label_column=declared.label,
        parse_label=named_label(declared.labels),
        clean_text=str.strip,
        target_type=np.int64,
        places=("glue", "."),
        id_column=None,
        quoted=declared.train.endswith(".csv"),
        header=declared.header,
        comma=declared.train.endswith(".csv"),
    )
    return files if count == len(declared.labels) else first_classes(files, count)


def clean_review(text: str) -> str:
    """Replace line breaks, written as two characters or as HTML, and spaces by single spaces."""
    return " ".join(text.replace("\\n", " ").replace("<br />", " ").split())


def reviews(name: str, classes: str | None = None) -> Task:
    """Return a task on reviews or topics with a softmax layer on the embedding of a text.

    `classes` keeps only the first ones.
    """
    published = REVIEWS[name]
    own_test = isinstance(published.test, str)
    files = LabelledFiles(
        files={"train": published.train} | ({"test": str(published.test)} if own_test else {}),
        text_columns=published.texts,
        label_column=published.label,
        parse_label=spelled_label(published.labels),
        clean_text=clean_review,
        target_type=np.int64,
        id_column=None,
        header=published.header,
        comma=True,
        labelled_test=True,
    )
    source: Source = PartedSource(files, None if own_test else float(published.test))
    if len(published.texts) > 1:
        source = joined_texts(source)
    count = int(classes or len(published.names))
    if count < len(published.names):
        source = first_classes(source, count)
    return classified(name, count, source, published.names)


def cfimdb() -> Task:
    """Return the task on long movie reviews, two classes, in the files of CS224N."""
    files = cs224n_files("ids-cfimdb", ("sentence",), "sentiment", class_label(2), clean_sentence)
    return classified("cfimdb", 2, files, MOODS)


def classified(name: str, classes: int, source: Source, names: tuple[str, ...]) -> Task:
    """Return a task with cross-entropy on a softmax layer."""
    return Task(
        name=name,
        kind=classification(classes, names=names[:classes]),
        source=source,
        build_head=partial(SoftmaxClassifier, classes=classes, dropout=DROPOUT),
        output=class_file(
            name, "Predicted_Label" if names == TOPICS else "Predicted_Sentiment", classes
        ),
    )


MAKERS: dict[str, Callable[..., Task]] = {"cfimdb": cfimdb} | {
    name: partial(reviews, name) for name in REVIEWS
}
