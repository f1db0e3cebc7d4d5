"""The tasks in CS224N's files: sentiment, paraphrase and similarity."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch.nn.functional as F
from torch import nn

from losses import pair_contrastive_loss
from tasks.base import Loss, Task, classification, embedding_loss, output_loss, similarity
from tasks.heads import (
    CosineSimilarity,
    HiddenClassifier,
    PairClassifier,
    SoftmaxClassifier,
)
from tasks.labelled_files import LabelledFiles
from tasks.predictions import PredictionFile, class_file, finite_number, one_of
from tasks.readers import class_label, clean_pair_text, clean_sentence, score_label

SST_CLASSES = ("very negative", "negative", "neutral", "positive", "very positive")
STS_SCALE = 5.0
PAIR = ("sentence1", "sentence2")
SST_HEADS: dict[str, Callable[[int], nn.Module]] = {
    "hidden": partial(HiddenClassifier, classes=len(SST_CLASSES)),
    "softmax": partial(SoftmaxClassifier, classes=len(SST_CLASSES)),
}
QQP_HEADS: dict[str, Callable[[int], nn.Module]] = {
    "difference": partial(PairClassifier, classes=2, difference=True),
    "concat": partial(PairClassifier, classes=2, difference=False),
}
QQP_LOSSES: dict[str, dict[str, Loss]] = {
    "cross-entropy": {},
    "with-contrastive": {
        "cross_entropy": output_loss(F.cross_entropy),
        "contrastive": embedding_loss(
            lambda texts, same: pair_contrastive_loss(texts[0], texts[1], same)
        ),
    },
}
STS_HEADS = {"hidden": True, "cosine": False}


def cs224n_files(
    stem: str,
    texts: tuple[str, ...],
    label: str,
    parse_label: Callable[[str], float],
    clean_text: Callable[[str], str],
    target_type: type = np.int64,
) -> LabelledFiles:
    """Return the three files of a task, `STEM-train.csv` and so on."""
    return LabelledFiles(
        files={
            split: f"{stem}-{name}.csv"
            for split, name in (("train", "train"), ("dev", "dev"), ("test", "test-student"))
        },
        text_columns=texts,
        label_column=label,
        parse_label=parse_label,
        clean_text=clean_text,
        target_type=target_type,
    )


def sst(head: str = "hidden") -> Task:
    """Return Stanford Sentiment Treebank, five classes; `hidden` is BEES' M4, `softmax` its M1."""
    classes = len(SST_CLASSES)
    return Task(
        name="sst",
        kind=classification(classes, names=SST_CLASSES),
        source=cs224n_files(
            "ids-sst", ("sentence",), "sentiment", class_label(classes), clean_sentence
        ),
        build_head=SST_HEADS[head],
        output=class_file("sst", "Predicted_Sentiment", classes),
    )


def qqp(head: str = "difference", loss: str = "cross-entropy", pair: str = "bi") -> Task:
    """Return Quora question pairs; the head `difference` is BEES' M5, `concat` its baseline M2.

    `with-contrastive` adds the contrastive loss of the embeddings as a separate objective. With
    `pair` "joint" both questions form one sequence, and the head is a softmax layer.
    """
    joint = pair == "joint"
    return Task(
        name="qqp",
        kind=classification(2, names=("different questions", "the same question")),
        source=cs224n_files("quora", PAIR, "is_duplicate", class_label(2), clean_pair_text),
        build_head=partial(SoftmaxClassifier, classes=2) if joint else QQP_HEADS[head],
        output=PredictionFile(
            "para",
            "Predicted_Is_Paraphrase",
            show=lambda value: str(float(value)),
            parse=one_of(["0.0", "1.0"]),
        ),
        several=QQP_LOSSES[loss],
        texts=2,
        joint=joint,
    )


def sts(head: str = "hidden", activation: str = "relu") -> Task:
    """Return semantic textual similarity from 0 to 5.

    The head `hidden` is BEES' M6, `cosine` its baseline M3. The activation is applied to the
    cosine: `relu`, because similarities are not negative; `sigmoid` is in BEES' Table 4.
    """
    return Task(
        name="sts",
        kind=similarity(STS_SCALE),
        source=cs224n_files(
            "sts", PAIR, "similarity", score_label(0, STS_SCALE), clean_pair_text, np.float32
        ),
        build_head=partial(
            CosineSimilarity, scale=STS_SCALE, hidden=STS_HEADS[head], activation=activation
        ),
        output=PredictionFile(
            "sts", "Predicted_Similiary", show=str, parse=finite_number, scale=(0, STS_SCALE)
        ),
        texts=2,
    )
