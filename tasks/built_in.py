"""The built-in tasks: those in CS224N's files, and those of the catalog's tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch.nn.functional as F
from torch import nn

from losses import pair_contrastive_loss
from tasks.base import Loss, Task, output_loss
from tasks.catalog import DECLARED, MOODS, REVIEWS, STARS
from tasks.heads import (
    CosineSimilarity,
    HiddenClassifier,
    JointSimilarity,
    PairClassifier,
    SoftmaxClassifier,
)
from tasks.kinds import classification, similarity
from tasks.labelled_files import LabelledFiles, Source
from tasks.predictions import PredictionFile, class_file, finite_number, one_of
from tasks.readers import (
    class_label,
    clean_pair_text,
    clean_sentence,
    named_label,
    score_label,
    spelled_label,
)
from tasks.splits import PartedSource, first_classes, joined_texts

DROPOUT = 0.1  # before the softmax layer: Moukafih et al. (2022), section 4.1
STS_SCALE = 5.0
PAIR = ("sentence1", "sentence2")
SST_HEADS: dict[str, Callable[..., nn.Module]] = {
    "hidden": HiddenClassifier,
    "softmax": SoftmaxClassifier,
}
QQP_HEADS: dict[str, Callable[[int], nn.Module]] = {
    "difference": partial(PairClassifier, classes=2, difference=True),
    "concat": partial(PairClassifier, classes=2, difference=False),
}
QQP_LOSSES: dict[str, dict[str, Loss]] = {
    "cross-entropy": {},
    "with-contrastive": {
        "cross_entropy": output_loss(F.cross_entropy),
        "contrastive": lambda outputs, texts, same: pair_contrastive_loss(texts[0], texts[1], same),
    },
}
STS_HEADS = {"hidden": True, "cosine": False}


def split_files(stem: str) -> dict[str, str]:
    """Return the names of a course's three files of a task, `STEM-train.csv` and so on."""
    names = {"train": "train", "dev": "dev", "test": "test-student"}
    return {split: f"{stem}-{name}.csv" for split, name in names.items()}


def course_files(
    stem: str,
    other_stem: str | None,
    texts: tuple[str, ...],
    label: str,
    parse_label: Callable[[str], float],
    clean_text: Callable[[str], str],
    target_type: type = np.int64,
) -> LabelledFiles:
    """Return the files of a task with the names of CS224N, or else those of Göttingen's course."""
    return LabelledFiles(
        files=split_files(stem),
        other_files=(split_files(other_stem),) if other_stem else (),
        text_columns=texts,
        label_columns=(label,),
        parse_label=parse_label,
        clean_text=clean_text,
        target_type=target_type,
    )


def sst(head: str) -> Task:
    """Return Stanford Sentiment Treebank, five classes; `hidden` is BEES' M4, `softmax` its M1."""
    classes = len(STARS)
    return Task(
        name="sst",
        kind=classification(classes, names=STARS),
        source=course_files(
            *("ids-sst", "sst-sentiment", ("sentence",), "sentiment"),
            *(class_label(classes), clean_sentence),
        ),
        build_head=partial(SST_HEADS[head], classes=classes),
        output=class_file("sst", "Predicted_Sentiment", classes),
    )


def qqp(head: str, loss: str, pair: str) -> Task:
    """Return Quora question pairs; the head `difference` is BEES' M5, `concat` its baseline M2.

    `with-contrastive` adds the contrastive loss of the embeddings as a separate objective. With
    `pair` "joint" both questions form one sequence, and the head is a softmax layer.
    """
    joint = pair == "joint"
    return Task(
        name="qqp",
        kind=classification(2, names=("different questions", "the same question")),
        source=course_files(
            *("quora", "quora-paraphrase", PAIR, "is_duplicate"), class_label(2), clean_pair_text
        ),
        build_head=partial(SoftmaxClassifier, classes=2) if joint else QQP_HEADS[head],
        output=PredictionFile(
            "para",
            "Predicted_Is_Paraphrase",
            show=lambda value: str(float(value)),
            parse=one_of(["0.0", "1.0"]),
        ),
        losses=QQP_LOSSES[loss],
        texts=2,
        joint=joint,
    )


def sts(head: str, activation: str, pair: str) -> Task:
    """Return semantic textual similarity from 0 to 5.

    The head `hidden` is BEES' M6, `cosine` its baseline M3. The activation is applied to the
    cosine: `relu` as in BEES, section 6, where `sigmoid` is its Table 4. docs/bees.md has what we
    measured. With `pair` "joint" both sentences form one sequence, and the head is a regression on
    its embedding.
    """
    joint = pair == "joint"
    build_head: Callable[[int], nn.Module] = partial(
        CosineSimilarity, scale=STS_SCALE, hidden=STS_HEADS[head], activation=activation
    )
    return Task(
        name="sts",
        kind=similarity(STS_SCALE),
        source=course_files(
            *("sts", "sts-similarity", PAIR, "similarity"),
            *(score_label(0, STS_SCALE), clean_pair_text, np.float32),
        ),
        build_head=partial(JointSimilarity, scale=STS_SCALE) if joint else build_head,
        output=PredictionFile(
            "sts", "Predicted_Similiary", show=str, parse=finite_number, scale=(0, STS_SCALE)
        ),
        joint=joint,
        texts=2,
    )


def declared_task(name: str, pair: str = "bi", classes: str | None = None) -> Task:
    """Return a task of GLUE or CLUE with a softmax layer on the embedding of a sentence.

    Pairs are encoded separately, with BEES' head for pairs (`bi`), or as one sequence
    `[CLS] a [SEP] b [SEP]` with the softmax layer (`joint`). `classes` keeps only the first ones.
    """
    declared = DECLARED[name]
    count, pairs = int(classes or len(declared.labels)), len(declared.texts) == 2
    joint = pairs and pair == "joint"
    head: Callable[[int], nn.Module] = partial(SoftmaxClassifier, classes=count, dropout=DROPOUT)
    if pairs and not joint:
        head = partial(PairClassifier, classes=count, difference=True)
    names = declared.names
    if not names and not any(label.isdigit() for label in declared.labels):
        names = tuple(label.replace("_", " ") for label in declared.labels)
    places = {split: f"{declared.folder}/{getattr(declared, split)}" for split in ("train", "dev")}
    files = LabelledFiles(
        files={split: f"glue/{file}" for split, file in places.items()},
        other_files=(places,),
        text_columns=declared.texts,
        label_columns=(declared.label,),
        parse_label=named_label(declared.labels),
        clean_text=str.strip,
        target_type=np.int64,
        id_column=None,
        quoted=declared.train.endswith(".csv"),
        header=declared.header,
    )
    return Task(
        name=name,
        kind=classification(count, matthews=True, names=names[:count]),
        source=files if count == len(declared.labels) else first_classes(files, count),
        build_head=head,
        output=class_file(name, "Predicted_Label", count),
        joint=joint,
        texts=len(declared.texts),
    )


def clean_review(text: str) -> str:
    """Replace line breaks, written as two characters or as HTML, and spaces by single spaces."""
    return " ".join(text.replace("\\n", " ").replace("<br />", " ").split())


def review_task(name: str, classes: str | None = None) -> Task:
    """Return a task on reviews or topics with a softmax layer on the embedding of a text.

    `classes` keeps only the first ones.
    """
    published = REVIEWS[name]
    own_test = isinstance(published.test, str)
    files = LabelledFiles(
        files={"train": published.train} | ({"test": str(published.test)} if own_test else {}),
        text_columns=published.texts,
        label_columns=(published.label,),
        parse_label=spelled_label(published.labels),
        clean_text=clean_review,
        target_type=np.int64,
        id_column=None,
        header=published.header,
        labelled_test=True,
    )
    source: Source = PartedSource(files, None if own_test else float(published.test))
    if len(published.texts) > 1:
        source = joined_texts(source)
    count = int(classes or len(published.names))
    if count < len(published.names):
        source = first_classes(source, count)
    return softmax_task(name, count, source, published.names)


def cfimdb() -> Task:
    """Return the task on long movie reviews, two classes, in the files of CS224N."""
    files = course_files(
        "ids-cfimdb", None, ("sentence",), "sentiment", class_label(2), clean_sentence
    )
    return softmax_task("cfimdb", 2, files, MOODS)


def softmax_task(name: str, classes: int, source: Source, names: tuple[str, ...]) -> Task:
    """Return a task with cross-entropy on a softmax layer."""
    return Task(
        name=name,
        kind=classification(classes, names=names[:classes]),
        source=source,
        build_head=partial(SoftmaxClassifier, classes=classes, dropout=DROPOUT),
        output=class_file(
            name, "Predicted_Label" if name == "dbpedia" else "Predicted_Sentiment", classes
        ),
    )


CATALOG: dict[str, Callable[..., Task]] = {
    **{name: partial(declared_task, name) for name in DECLARED},
    "cfimdb": cfimdb,
    **{name: partial(review_task, name) for name in REVIEWS},
}
