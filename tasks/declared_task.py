"""Tasks of GLUE and CLUE, made of a line of their tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from torch import nn

from tasks import DECLARED, PAIRS
from tasks.base import Task
from tasks.declared import Declared
from tasks.filtered import FirstClasses
from tasks.heads import PairClassifier, SoftmaxClassifier
from tasks.kinds import classification
from tasks.labelled_files import LabelledFiles, Source
from tasks.predictions import class_file
from tasks.readers import named_label

PAIR_OPTIONS = ("bi", "joint")
DROPOUT = 0.1  # before the softmax layer: Moukafih et al. (2022), section 4.1


def declared_task(name: str, pair: str = PAIR_OPTIONS[0], classes: str | None = None) -> Task:
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
