"""Quora question pairs: two questions, do they ask the same?"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from tasks.base import Task, classification
from tasks.heads import PairClassifier
from tasks.readers import class_label, clean_pair_text

HEADS: dict[str, Callable[[int], nn.Module]] = {
    "difference": lambda width: PairClassifier(width, 2, difference=True),
    "concat": lambda width: PairClassifier(width, 2, difference=False),
}


def qqp(head: str = "difference") -> Task:
    """Paraphrase; `difference` is BEES' M5, `concat` its baseline M2."""
    return Task(
        name="qqp",
        kind=classification("binary"),
        files={
            "train": "quora-train.csv",
            "dev": "quora-dev.csv",
            "test": "quora-test-student.csv",
        },
        text_columns=("sentence1", "sentence2"),
        label_column="is_duplicate",
        parse_label=class_label(2),
        clean_text=clean_pair_text,
        build_head=HEADS[head],
        output_stem="para",
        output_column="Predicted_Is_Paraphrase",
        output_format=lambda value: str(float(value)),
    )
