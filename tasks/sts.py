"""Semantic textual similarity: two sentences, a similarity from 0 to 5."""

from __future__ import annotations

from functools import partial

import numpy as np

from tasks.base import Task
from tasks.heads import CosineSimilarity
from tasks.kinds import similarity
from tasks.labelled_files import LabelledFiles
from tasks.predictions import PredictionFile, finite_number
from tasks.readers import clean_pair_text, score_label

SCALE = 5.0
HEADS = {"hidden": True, "cosine": False}


def sts(head: str = "hidden", activation: str = "relu") -> Task:
    """Similarity; `hidden` is BEES' M6, `cosine` its baseline M3; `sigmoid` is its Table 4."""
    return Task(
        name="sts",
        kind=similarity(SCALE),
        source=LabelledFiles(
            files={
                "train": "sts-train.csv",
                "dev": "sts-dev.csv",
                "test": "sts-test-student.csv",
            },
            text_columns=("sentence1", "sentence2"),
            label_column="similarity",
            parse_label=score_label(0, SCALE),
            clean_text=clean_pair_text,
            target_type=np.float32,
        ),
        build_head=partial(
            CosineSimilarity, scale=SCALE, hidden=HEADS[head], activation=activation
        ),
        output=PredictionFile(
            "sts", "Predicted_Similiary", show=str, parse=finite_number, scale=(0, SCALE)
        ),
        texts=2,
    )
