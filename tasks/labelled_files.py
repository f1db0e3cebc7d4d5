"""Where the examples of a task come from: files of texts and labels, read row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from tasks.readers import Examples, Limit, text_hash
from tasks.text_files import DataError, rows_by_name

NO_AGREEMENT = "-"  # of annotators, in SNLI and its kin


class Row(NamedTuple):
    """One example of a file."""

    id: str
    texts: list[str]
    target: float | None


class Source(Protocol):
    """Where the examples of a task come from."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Those there are, of train, dev and test."""
        ...

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """The examples of a split; DataError names file and line.

        `limit` is always kept of train: so many, or so many of each task the texts come from. Of
        dev and test `tasks.data.read_split` draws.
        """
        ...

    def where(self, folder: Path, split: str) -> str:
        """The file or files of a split."""
        ...


@dataclass(frozen=True)
class LabelledFiles:
    """Files of rows, one a split: a text or two and a label, which `test` lacks as a rule.

    They lie in the first of the `places` of the data folder in which they are found. Without an
    `id_column` an example's row is its id, from 1; `header` names the columns of files that do not;
    with `comma` fields may be separated by commas, too.
    """

    files: Mapping[str, str]
    text_columns: tuple[str, ...]
    label_column: str
    parse_label: Callable[[str], float]
    clean_text: Callable[[str], str]
    target_type: type
    places: tuple[str, ...] = (".",)
    id_column: str | None = "id"
    quoted: bool = True
    header: tuple[str, ...] | None = None
    comma: bool = False
    labelled_test: bool = False
    blank: tuple[str, ...] = ("", NO_AGREEMENT)  # labels that are none
    lower_ids: bool = True

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        return self.at(folder, split).some(limit)

    def at(self, folder: Path, split: str, places: np.ndarray | None = None) -> Examples:
        """The examples of these places in the file, or all; no others are held."""
        file, rows = self.file(folder, split), self.rows(folder, split)
        kind = self.target_type if self.labelled(split) else None
        return gathered(file, rows, len(self.text_columns), kind, places)

    def labelled(self, split: str) -> bool:
        return split != "test" or self.labelled_test

    def hashes(self, folder: Path, split: str) -> np.ndarray:
        """Of each example's texts 64 bits by which they are known again; no example is held."""
        rows = self.rows(folder, split)
        return np.fromiter((text_hash(row.texts) for row in rows if row is not None), np.uint64)

    def rows(self, folder: Path, split: str) -> Iterator[Row | None]:
        """One after the other; None for a blank label. DataError tells file and line."""
        path = self.file(folder, split)
        label_column = self.label_column if self.labelled(split) else None
        columns = (self.id_column, *self.text_columns, label_column)
        needed = [name for name in columns if name is not None]
        lines: dict[str, int] = {}  # id -> line
        rows = rows_by_name(path, needed, self.comma, quoted_tabs=self.quoted, names=self.header)
        for number, (line, row) in enumerate(rows, 1):
            identity = str(number)
            if self.id_column:
                identity = row[self.id_column].strip()
                identity = identity.lower() if self.lower_ids else identity
                check_id(identity, path, line, lines)
            target = None
            if label_column:
                label = row[label_column].strip()
                if label in self.blank:
                    yield None
                    continue
                target = self.target(label, f"{path}, line {line}")
            yield Row(identity, [self.clean_text(row[name]) for name in self.text_columns], target)

    def target(self, label: str, where: str) -> float:
        """The number of a label; DataError tells what was expected."""
        try:
            return self.parse_label(label)
        except ValueError as error:
            raise DataError(f"{where}: {self.label_column}: {error}, found {label!r}") from error

    def file(self, folder: Path, split: str) -> Path:
        """Where the file is: all of a task's lie in the first place that has any of them."""
        places = [folder / place for place in self.places]
        having = [p for p in places if any((p / file).exists() for file in self.files.values())]
        return (having or places)[0] / self.files[split]

    def where(self, folder: Path, split: str) -> str:
        return str(self.file(folder, split))


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


def files_of(source: Source) -> LabelledFiles:
    """What a task's files are read by, behind whatever parts or draws their examples."""
    while not isinstance(source, LabelledFiles):
        source = getattr(source, "source")  # noqa: B009 (each wrapper has one)
    return source
