"""GLUE-style tasks, read from GLUE's own files: tab-separated, never quoted, labels by name.

A further one is a line of `GLUE`: folder, columns, labels, and the files' names where they are not
GLUE's, such as `train.csv`, which may have commas and quotes. Its name, too, goes into the lists of
`tasks/__init__.py`. Files lie in `--data DIR` itself or in its folder `glue`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from torch import nn

from tasks import PAIRS
from tasks.base import Task
from tasks.clue import CLUE
from tasks.declared import Declared
from tasks.filtered import FirstClasses
from tasks.heads import PairClassifier, SoftmaxClassifier
from tasks.kinds import classification
from tasks.labelled_files import LabelledFiles, Source
from tasks.predictions import class_file
from tasks.readers import named_label

PAIR_OPTIONS = ("bi", "joint")
DROPOUT = 0.1  # before the softmax layer: Moukafih et al. (2022), section 4.1


GLUE = {
    "sst2": Declared("SST-2", ("sentence",), "label", ("0", "1"), names=("negative", "positive")),
    "cola": Declared(
        "CoLA",
        ("sentence",),
        "label",
        ("0", "1"),
        header=("source", "label", "mark", "sentence"),
        names=("unacceptable", "acceptable"),
    ),
    "mrpc": Declared(
        "MRPC",
        ("#1 String", "#2 String"),
        "Quality",
        ("0", "1"),
        names=("different", "equivalent"),
    ),
    "rte": Declared("RTE", ("sentence1", "sentence2"), "label", ("entailment", "not_entailment")),
    "qnli": Declared("QNLI", ("question", "sentence"), "label", ("entailment", "not_entailment")),
    "mnli": Declared(
        "MNLI",
        ("sentence1", "sentence2"),
        "gold_label",
        ("entailment", "neutral", "contradiction"),
        dev="dev_matched.tsv",
    ),
    "trec": Declared(
        "TREC",
        ("sentence",),
        "label",
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        names=("abbreviation", "description", "entity", "human", "location", "number"),
    ),
}


DECLARED = GLUE | CLUE


def glue(name: str, pair: str = PAIR_OPTIONS[0], classes: str | None = None) -> Task:
    """A task of this name, with a softmax layer on the embedding of a sentence.

    Pairs go through two towers and BEES' head for pairs (`bi`), or as one sequence
    `[CLS] a [SEP] b [SEP]` through the softmax layer, too (`joint`). With `classes` the first ones
    alone.
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
    """The files of a task, or the examples of its first classes."""
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
    return files if count == len(declared.labels) else FirstClasses(files, count)
