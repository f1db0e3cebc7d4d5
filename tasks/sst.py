"""Stanford Sentiment Treebank: one sentence, five classes from very negative to very positive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import nn

from tasks.base import Task
from tasks.heads import HiddenClassifier, SoftmaxClassifier
from tasks.kinds import classification
from tasks.labelled_files import LabelledFiles
from tasks.predictions import class_file
from tasks.readers import class_label, clean_sentence

CLASSES = 5
NAMES = ("very negative", "negative", "neutral", "positive", "very positive")
HEADS: dict[str, Callable[[int], nn.Module]] = {
    "hidden": lambda width: HiddenClassifier(width, CLASSES),
    "softmax": lambda width: SoftmaxClassifier(width, CLASSES),
}


def sst(head: str = "hidden") -> Task:
    """Sentiment; `hidden` is BEES' M4, `softmax` its baseline M1."""
    return Task(
        name="sst",
        kind=classification(CLASSES, names=NAMES),
        source=LabelledFiles(
            files={
                "train": "ids-sst-train.csv",
                "dev": "ids-sst-dev.csv",
                "test": "ids-sst-test-student.csv",
            },
            text_columns=("sentence",),
            label_column="sentiment",
            parse_label=class_label(CLASSES),
            clean_text=clean_sentence,
            target_type=np.int64,
        ),
        build_head=HEADS[head],
        output=class_file("sst", "Predicted_Sentiment", CLASSES),
    )
