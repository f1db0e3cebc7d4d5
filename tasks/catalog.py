"""The tables of built-in data sets in catalog.toml: GLUE, CLUE, reviews and topics.

Files are in `--data DIR`; those of GLUE and CLUE may also be in its folder `glue`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

MOODS = ("negative", "positive")
STARS = ("very negative", "negative", "neutral", "positive", "very positive")


@dataclass(frozen=True)
class Declared:
    """Files and columns of a task; `header` names the columns of files without a header line.

    `names` are readable names of the classes, for labels that are not readable.
    """

    folder: str
    texts: tuple[str, ...]
    label: str
    labels: tuple[str, ...]
    train: str = "train.tsv"
    dev: str = "dev.tsv"
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Published:
    """Files and columns of a data set; `header` names the columns of files without a header line.

    `labels` maps the labels in a file to classes. `test` is a file, or the share of the file
    `train` that is held out for test.
    """

    train: str
    test: str | float
    texts: tuple[str, ...]
    label: str
    labels: dict[str, int]
    header: tuple[str, ...] | None = None
    names: tuple[str, ...] = MOODS


DataSet = TypeVar("DataSet", Declared, Published)
TABLES = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text("utf-8"))


def data_sets(group: str, kind: type[DataSet]) -> dict[str, DataSet]:
    """Return the data sets of a group by name."""
    return {name: msgspec.convert(one, kind) for name, one in TABLES[group].items()}


GLUE, CLUE = data_sets("glue", Declared), data_sets("clue", Declared)
REVIEWS = data_sets("reviews", Published)
DECLARED = GLUE | CLUE
