"""Files of labelled texts -> examples, each fault in one line with its file and line number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tasks.text_files import DataError, rows_by_name


@dataclass(frozen=True)
class Examples:
    """n examples, in the order of their file.

    `texts` holds one list of n strings a text column; `targets` is (n,), int64 class or float32
    score, or what else the losses of a task want of n examples; None in a test file.
    `blank_labels` counts rows left out for want of a label, `leaked` those that are also in dev or
    test.
    """

    ids: list[str]
    texts: tuple[list[str], ...]
    targets: np.ndarray | None
    blank_labels: int = 0
    leaked: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def some(self, limit: int | None) -> Examples:
        """`limit` examples drawn at random, in the file's order; all of them for None.

        Always the same ones, for every seed of a run. Not the first: the files of SST are sorted.
        """
        if limit is None or limit >= len(self):
            return self
        rows = np.sort(np.random.default_rng(0).permutation(len(self))[:limit])
        return self.at(rows)

    def at(self, rows: np.ndarray) -> Examples:
        """Some of the examples, in the order asked for."""
        return replace(
            self,
            ids=[self.ids[row] for row in rows],
            texts=tuple([column[row] for row in rows] for column in self.texts),
            targets=None if self.targets is None else self.targets[rows],
        )


NO_AGREEMENT = "-"  # of annotators, in SNLI and its kin


class Row(NamedTuple):
    """One example of a file."""

    id: str
    texts: list[str]
    target: float | None


def example_rows(
    path: Path,
    text_columns: tuple[str, ...],
    clean_text: Callable[[str], str],
    label_column: str | None = None,
    parse_label: Callable[[str], float] = float,
    id_column: str | None = "id",
    quoted: bool = True,
    header: tuple[str, ...] | None = None,
    comma: bool = False,
    blank: tuple[str, ...] = ("", NO_AGREEMENT),
    lower_ids: bool = True,
) -> Iterator[Row | None]:
    """Rows of a tab-separated file by column name, as the CS224N starter code reads them.

    None stands for a row whose label is one of `blank`.

    Args:
        text_columns: one or two names; each text goes through `clean_text`.
        label_column: None for a file without labels.
        parse_label: text of a label -> number; its ValueError says what was expected.
        id_column: None for a file without ids: then its rows count from 1.
        quoted: whether fields may be quoted; GLUE's files have quotes that mean nothing.
        header: names of the columns of a file without a header line.
        comma: whether fields may be separated by commas, if the header holds no tab.
        lower_ids: the leaderboard's are, however a file writes them.

    Raises:
        DataError: file, line, what was expected and what was found.
    """
    needed = [name for name in (id_column, *text_columns, label_column) if name is not None]
    lines: dict[str, int] = {}  # id -> line
    rows = rows_by_name(path, needed, comma, quoted_tabs=quoted, names=header)
    for number, (line, row) in enumerate(rows, 1):
        identity = str(number)
        if id_column:
            identity = row[id_column].strip()
            identity = identity.lower() if lower_ids else identity
            check_id(identity, path, line, lines)
        target = None
        if label_column:
            label = row[label_column].strip()
            if label in blank:
                yield None
                continue
            try:
                target = parse_label(label)
            except ValueError as error:
                raise DataError(
                    f"{path}, line {line}: {label_column}: {error}, found {label!r}"
                ) from error
        yield Row(identity, [clean_text(row[name]) for name in text_columns], target)


def check_id(identity: str, path: Path, line: int, lines: dict[str, int]) -> None:
    """DataError for an id that `lines` has already, or that would break the prediction file."""
    if not identity:
        raise DataError(f"{path}, line {line}: expected an id, found a blank field")
    if not identity.isprintable() or " , " in identity:
        raise DataError(
            f"{path}, line {line}: expected an id without ' , ' and line breaks, found {identity!r}"
        )
    if identity in lines:
        raise DataError(
            f"{path}, line {line}: expected ids that differ, "
            f"found {identity!r} again (first in line {lines[identity]})"
        )
    lines[identity] = line


def gathered(
    path: Path,
    rows: Iterable[Row | None],
    columns: int,
    target_type: type | None,
    wanted: np.ndarray | None = None,
) -> Examples:
    """The rows of a file as examples, or the `wanted` ones of them, by their place; others go.

    `columns` is how many texts there are, `target_type` None for a file without labels.
    """
    chosen = None if wanted is None else set(wanted.tolist())
    ids: list[str] = []
    texts: tuple[list[str], ...] = tuple([] for _ in range(columns))
    targets: list[float | None] = []
    blank = 0
    for place, row in enumerate(rows):
        if row is None:
            blank += 1
        elif chosen is None or place - blank in chosen:
            ids.append(row.id)
            targets.append(row.target)
            for column, text in zip(texts, row.texts, strict=True):
                column.append(text)
    if not ids:
        found = f"{blank} rows with a blank label" if blank else "only a header line"
        raise DataError(f"{path}: expected at least one example, found {found}")
    return Examples(ids, texts, np.array(targets, target_type) if target_type else None, blank)


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


def bare(text: str) -> str:
    """Letters and digits in lower case."""
    return "".join(filter(str.isalnum, text.lower()))
