"""Examples, and how texts and labels are read from the fields of a file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

Limit = int | float | None  # examples, or a share of them below 1; None for all
Limits = int | float | Mapping[str, int | float] | None  # of every task, or by task


@dataclass(frozen=True)
class Examples:
    """n examples, in the order of their file.

    `texts` holds one list of n strings a text column; `targets` is (n,), int64 class or float32
    score, or what else the losses of a task want of n examples; None in a test file.
    `blank_labels` counts rows left out for want of a label, `leaked` those that are also in dev or
    test. `available` counts the examples before a limit, of which these were drawn.
    """

    ids: list[str]
    texts: tuple[list[str], ...]
    targets: np.ndarray | None
    blank_labels: int = 0
    leaked: int = 0
    drawn_from: int | None = None  # examples that a limit drew these from

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def available(self) -> int:
        return len(self) if self.drawn_from is None else self.drawn_from

    def some(self, limit: Limit) -> Examples:
        """`limit` examples drawn at random, or a share of them; all of them for None."""
        rows = drawn(len(self), limit)
        if len(rows) == len(self):
            return self
        return replace(self.at(rows), drawn_from=self.available)

    def at(self, rows: np.ndarray) -> Examples:
        """Some of the examples, in the order asked for."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            texts=tuple([column[row] for row in rows] for column in self.texts),
            targets=None if self.targets is None else self.targets[rows],
        )


def amount(count: int, limit: Limit) -> int:
    """How many of `count` examples a limit leaves: a share leaves one at least."""
    if limit is None:
        return count
    return min(count, max(1, round(limit * count)) if isinstance(limit, float) else limit)


def limit_of(limit: Limits, task: str) -> Limit:
    """The limit of a task: the run's, or the one of its name."""
    return limit.get(task) if isinstance(limit, Mapping) else limit


def drawn(count: int, limit: Limit) -> np.ndarray:
    """Places of `limit` of `count` examples drawn at random, in the file's order; all for None.

    Always the same ones, for every seed of a run. Not the first: the files of SST are sorted.
    """
    return np.sort(np.random.default_rng(0).permutation(count)[: amount(count, limit)])


def clean_sentence(text: str) -> str:
    """SST: lower case, stripped."""
    return text.lower().strip()


def clean_pair_text(text: str) -> str:
    """Quora and STS: lower case, a space before . ? , ' and single spaces between words."""
    text = text.lower()
    for mark in ".?,'":
        text = text.replace(mark, f" {mark}")
    return " ".join(text.split())


def class_label(classes: int) -> Callable[[str], float]:
    """A parser of whole numbers from 0 to `classes` - 1, `1.0` allowed."""

    def parse(label: str) -> float:
        value = to_number(label)
        if value is None or value not in range(classes):
            raise ValueError(f"expected a whole number from 0 to {classes - 1}")
        return value

    return parse


def named_label(names: tuple[str, ...]) -> Callable[[str], float]:
    """A parser of labels by name, which are numbered in this order."""

    def parse(label: str) -> float:
        if label not in names:
            raise ValueError(f"expected {', '.join(names)}")
        return names.index(label)

    return parse


def spelled_label(classes: Mapping[str, int]) -> Callable[[str], float]:
    """A parser of labels that may be spelled in several ways, in any case."""

    def parse(label: str) -> float:
        if label.lower() not in classes:
            raise ValueError(f"expected {', '.join(classes)}")
        return classes[label.lower()]

    return parse


def score_label(low: float, high: float) -> Callable[[str], float]:
    """A parser of numbers from `low` to `high`."""

    def parse(label: str) -> float:
        value = to_number(label)
        if value is None or not low <= value <= high:
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return value

    return parse


def to_number(label: str) -> float | None:
    """A finite number, or None."""
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def text_hash(texts: Sequence[str]) -> int:
    """64 bits of the texts of an example, bare, whichever comes first."""
    joined = "\n".join(sorted({bare(text) for text in texts}))
    return int.from_bytes(hashlib.blake2b(joined.encode(), digest_size=8).digest(), "big")


def bare(text: str) -> str:
    """Letters and digits in lower case."""
    return "".join(filter(str.isalnum, text.lower()))
