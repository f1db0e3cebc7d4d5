"""Examples, and parsers of texts and labels in the fields of a file."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from common.text import first_names

Label = float | tuple[float, ...]  # a class, a number, or 0 or 1 for each of several labels
Parser = Callable[[str], Any]  # of a cell -> Label, or None for no label
LARGEST = 1e30  # number, so that float32 can hold it
Limit = int | float | None  # number of examples, or a share below 1; None for all
Limits = int | float | Mapping[str, int | float] | None  # of every task, or by task


@dataclass(frozen=True)
class Examples:
    """n examples, in the order of their file.

    `texts` holds one list of n strings per text column. `targets` (n, ...) holds int64 classes,
    float32 scores or other inputs of a task's losses; it is None in a test file without labels.
    `blank_rows` counts the rows skipped for a blank label or text, `leaked` those removed because
    they are also in dev or test. `drawn_from` counts the examples before a limit.
    """

    ids: list[str]
    texts: tuple[list[str], ...]
    targets: np.ndarray | None
    blank_rows: int = 0
    leaked: int = 0
    drawn_from: int | None = None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def available(self) -> int:
        return len(self) if self.drawn_from is None else self.drawn_from

    def sample(self, limit: Limit) -> Examples:
        """Return `limit` examples drawn at random, or a share of them; all of them for None."""
        rows = sample_rows(len(self), limit)
        if len(rows) == len(self):
            return self
        return replace(self.select(rows), drawn_from=self.available)

    def select(self, rows: np.ndarray) -> Examples:
        """Return the examples of these rows, in their order."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            texts=tuple([column[row] for row in rows] for column in self.texts),
            targets=None if self.targets is None else self.targets[rows],
        )


def limit_of(limit: Limits, task: str) -> Limit:
    """Return the limit of a task: the run's, or the one for its name."""
    return limit.get(task) if isinstance(limit, Mapping) else limit


def sample_rows(count: int, limit: Limit) -> np.ndarray:
    """Return sorted positions of `limit` of `count` examples, drawn at random; all for None.

    A share has at least one. They do not depend on a run's random seed. The first ones would not
    do: SST's files are sorted.
    """
    most = max(1, round(limit * count)) if isinstance(limit, float) else limit
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def clean_sentence(text: str) -> str:
    """Convert a sentence of SST to lower case and strip it."""
    return text.lower().strip()


def clean_pair_text(text: str) -> str:
    """Convert a text of Quora or STS to lower case, single spaces, and a space before . ? , '"""
    text = text.lower()
    for mark in ".?,'":
        text = text.replace(mark, f" {mark}")
    return " ".join(text.split())


def class_parser(spellings: Mapping[str, int | None] | int) -> Parser:
    """Return a parser of classes by their spellings, in any case, numbers also as 1.0 or 1e0.

    A number C stands for the classes 0 to C - 1. A blank cell is no label, nor is `-`, with which
    data sets of NLI mark a lack of agreement.
    """
    if isinstance(spellings, int):
        classes: Mapping[str, int | None] = {str(number): number for number in range(spellings)}
    else:
        classes = spellings
    known = {"": None, "-": None} | {plain(one): number for one, number in classes.items()}
    known |= classes

    def parse(cell: str) -> int | None:
        if (found := cell if cell in known else plain(cell)) not in known:
            raise ValueError(f"expected {first_names([*classes], 20)}")
        return known[found]

    return parse


def plain(cell: str) -> str:
    return cell.lower() if (number := to_number(cell)) is None else str(number)


def number_parser(low: float = -LARGEST, high: float = LARGEST, origin: float = 0.0) -> Parser:
    """Return a parser of numbers from `low` to `high`, relative to `origin`."""

    def parse(cell: str) -> float | None:
        value = to_number(cell)
        if cell and (value is None or not low <= value <= high):
            raise ValueError(f"expected a number from {low:g} to {high:g}")
        return None if value is None else value - origin

    return parse


def to_number(label: str) -> float | None:
    """Return a label as a finite number, or None; Python's 1_000 is a name."""
    if "_" in label:
        return None
    try:
        value = float(label)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def text_hash(texts: Sequence[str]) -> int:
    """Return a 64-bit hash of an example's texts after `normalise_text`, in any order."""
    joined = "\n".join(sorted({normalise_text(text) for text in texts}))
    return int.from_bytes(hashlib.blake2b(joined.encode(), digest_size=8).digest(), "big")


# Accents that are still apart after composition, and selectors of a symbol's form.
IGNORED = re.compile("[\u0300-\u036f\ufe00-\ufe0f\U000e0100-\U000e01ef]")


def normalise_text(text: str) -> str:
    """Return the letters, their vowel signs, and the digits of a text in lower case.

    Texts count as equal if these are. Of a text without letters and digits, the symbols are
    returned, such as emoji, but no punctuation.
    """
    text = text.lower()
    found = "".join(filter(str.isalnum, text))
    if text.isascii() and found:
        return found
    text = IGNORED.sub("", unicodedata.normalize("NFC", text))
    kept = ("Mn", "Mc") if found else ("Sc", "Sk", "Sm", "So")  # Unicode's marks and symbols
    return "".join(c for c in text if c.isalnum() or unicodedata.category(c) in kept)
