"""Tasks built from descriptions, with files, head, losses and prediction file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from tasks.base import Task, classification, similarity
from tasks.described import Described
from tasks.heads import CosineSimilarity, HiddenClassifier, PairClassifier
from tasks.labelled_files import LabelledFiles, Source
from tasks.predictions import PredictionFile, finite_number
from tasks.readers import named_label, score_label
from tasks.splits import PartedSource

TESTED = 0.1  # share of a single file for test; dev has the same share


def own_task(described: Described) -> Task:
    """Return a task with BEES' head for sentiment (M4), pairs (M5) or similarity (M6)."""
    if described.type == "similarity":
        return similarity_task(described)
    labels = described.labels
    pairs = len(described.texts) == 2 and not described.joint
    head: Callable[[int], nn.Module] = partial(HiddenClassifier, classes=len(labels))
    if pairs:
        head = partial(PairClassifier, classes=len(labels), difference=True)
    return Task(
        name=described.name,
        kind=classification(len(labels), matthews=True, names=labels),
        source=source_of(described, named_label(labels), np.int64),
        build_head=head,
        output=PredictionFile(
            described.name,
            "Predicted_Label",
            show=lambda value: labels[int(value)],
            parse=named_label(labels),
        ),
        joint=described.joint,
        texts=len(described.texts),
    )


def similarity_task(described: Described) -> Task:
    """Return a similarity task; its targets are relative to `low`, but not the numbers in files."""
    low, span = described.low, described.high - described.low
    label = score_label(low, described.high)
    return Task(
        name=described.name,
        kind=similarity(span),
        source=source_of(described, lambda text: label(text) - low, np.float32),
        build_head=partial(CosineSimilarity, scale=span, hidden=True, activation="relu"),
        output=PredictionFile(
            described.name,
            "Predicted_Similarity",
            show=lambda value: str(np.float32(value + low)),
            parse=lambda text: finite_number(text) - low,
            scale=(0, span),
        ),
        texts=2,
    )


def source_of(
    described: Described, parse_label: Callable[[str], float], target_type: type
) -> Source:
    """Return the files. Without a dev file a tenth of the first file is dev; without a test file,
    another tenth is test.
    """
    known = {"train": described.train, "dev": described.dev, "test": described.test}
    files = {split: file for split, file in known.items() if file is not None}
    read = LabelledFiles(
        # Relative to the working directory, not to --data.
        files={split: str(Path(file).absolute()) for split, file in files.items()},
        text_columns=described.texts,
        label_column=described.label,
        parse_label=parse_label,
        clean_text=str.strip,
        target_type=target_type,
        places=(".",),
        id_column=described.id,
        quoted=described.quotes,
        comma=True,
        labelled_test=described.test_labels or described.dev is None,
        blank=("",),
        lower_ids=False,
    )
    if described.dev is not None:
        return read
    return PartedSource(read, TESTED if described.test is None else None)
