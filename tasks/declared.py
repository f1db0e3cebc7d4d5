"""How a classification task's files are described, in a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Declared:
    """Where a task's texts and labels are; `header` names the columns of files that do not.

    `names` are what people call the classes, where the labels do not say it.
    """

    folder: str
    texts: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    train: str = "train.tsv"
    dev: str = "dev.tsv"
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()
