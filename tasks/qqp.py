"""Quora question pairs: two questions, do they ask the same?"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch.nn.functional as F
from torch import nn

from losses import pair_contrastive_loss
from tasks.base import Loss, Task, of_outputs, of_texts
from tasks.heads import PairClassifier, SoftmaxClassifier
from tasks.kinds import classification
from tasks.labelled_files import LabelledFiles
from tasks.predictions import PredictionFile, one_of
from tasks.readers import class_label, clean_pair_text

HEADS: dict[str, Callable[[int], nn.Module]] = {
    "difference": lambda width: PairClassifier(width, 2, difference=True),
    "concat": lambda width: PairClassifier(width, 2, difference=False),
}


LOSSES: dict[str, dict[str, Loss]] = {
    "cross-entropy": {},
    "with-contrastive": {
        "cross_entropy": of_outputs(F.cross_entropy),
        "contrastive": of_texts(
            lambda texts, same: pair_contrastive_loss(texts[0], texts[1], same)
        ),
    },
}


def qqp(head: str = "difference", loss: str = "cross-entropy", pair: str = "bi") -> Task:
    """Paraphrase; the head `difference` is BEES' M5, `concat` its baseline M2.

    `with-contrastive` adds the contrastive loss of the embeddings as an objective of its own. With
    `pair` "joint" both questions are one sequence, and a softmax layer the head.
    """
    joint = pair == "joint"
    return Task(
        name="qqp",
        kind=classification(2, names=("different questions", "the same question")),
        source=LabelledFiles(
            files={
                "train": "quora-train.csv",
                "dev": "quora-dev.csv",
                "test": "quora-test-student.csv",
            },
            text_columns=("sentence1", "sentence2"),
            label_column="is_duplicate",
            parse_label=class_label(2),
            clean_text=clean_pair_text,
            target_type=np.int64,
        ),
        build_head=partial(SoftmaxClassifier, classes=2) if joint else HEADS[head],
        output=PredictionFile(
            "para",
            "Predicted_Is_Paraphrase",
            show=lambda value: str(float(value)),
            parse=one_of(["0.0", "1.0"]),
        ),
        several=LOSSES[loss],
        texts=2,
        joint=joint,
    )
