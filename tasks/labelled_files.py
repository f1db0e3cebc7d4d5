"""Sources of a task's examples: files of texts and labels, read row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tasks.readers import Examples, Limit, label_fault, text_hash
from tasks.tables import rows_by_name
from tasks.text_files import DataError

Label = float | tuple[float, ...]  # a class, a number, or 0 or 1 for each of several labels
NO_AGREEMENT = "-"  # of annotators, in SNLI and similar data sets


class Row(NamedTuple):
    """One example of a file; `group` is empty without a column of groups."""

    id: str
    texts: list[str]
    target: Label | None
    group: str = ""


class Source(Protocol):
    """A source of a task's examples."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Return the available splits of train, dev and test."""
        ...

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """Return the examples of a split; raise DataError with file and line.

        A source applies `limit` to train: to all examples, or per task if its texts come from
        several tasks. `tasks.data.read_split` applies it to dev and test.
        """
        ...

    def where(self, folder: Path, split: str) -> str:
        """Return the file or files of a split."""
        ...


@dataclass(frozen=True)
class LabelledFiles:
    """One file per split, with one or two texts and a label in each row; `test` may have no labels.

    The files are in the first of the `places` in the data folder that has any of them. If none has,
    the files may also have the names in `other_files`, with tabs or commas. Without an `id_column`
    the row number, from 1, is the id. `header` names the columns of files without a
    header line. With `comma` fields may also be separated by commas; None: as in a user's files.

    Labels are in the `label_column`, or in one of the `indicators` for each of several labels,
    which `parse_label` reads one by one. With a `separator`, a label in JSONL or Parquet may also
    be a list. Rows of train with the same value in the `group_column` belong together.
    """

    files: Mapping[str, str]
    text_columns: tuple[str, ...]
    label_column: str | None
    parse_label: Callable[[str], Any]  # -> Label
    clean_text: Callable[[str], str]
    target_type: type
    places: tuple[str, ...] = (".",)
    other_files: Mapping[str, str] | None = None
    id_column: str | None = "id"
    quoted: bool = True
    header: tuple[str, ...] | None = None
    comma: bool | None = False
    labelled_test: bool = False
    blank: tuple[str, ...] = ("", NO_AGREEMENT)  # labels that mean none
    lower_ids: bool = True
    skip_blank_texts: bool = False  # like blank labels, in a file with labels
    indicators: tuple[str, ...] = ()
    separator: str | None = None
    group_column: str | None = None

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.indicators or ((self.label_column,) if self.label_column else ())

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        return self.select(folder, split).sample(limit)

    def select(self, folder: Path, split: str, places: np.ndarray | None = None) -> Examples:
        """Return the examples at these positions in the file, or all; hold no others in memory."""
        file, rows = self.file(folder, split), self.rows(folder, split)
        kind = self.target_type if self.labelled(split) else None
        return collect_examples(file, rows, len(self.text_columns), kind, places)

    def labelled(self, split: str) -> bool:
        return split != "test" or self.labelled_test

    def allows_commas(self, path: Path) -> bool | None:
        """Return whether the fields of a file may be separated by commas, as for `has_commas`."""
        return path.name in (self.other_files or {}).values() or self.comma

    def hashes(self, folder: Path, split: str) -> np.ndarray:
        """Return a 64-bit hash of each example's group, or of its texts if it has none.

        The examples are not held in memory.
        """
        rows = filter(None, self.rows(folder, split))
        return np.fromiter(
            (text_hash([row.group] if row.group else row.texts) for row in rows), np.uint64
        )

    def rows(self, folder: Path, split: str) -> Iterator[Row | None]:
        """Yield each row, None for one that is skipped; raise DataError with file and line."""
        path = self.file(folder, split)
        labelled = self.labelled(split)
        labels = self.label_columns if labelled else ()
        group_column = self.group_column if split == "train" else None
        columns = (self.id_column, *self.text_columns, *labels, group_column)
        needed = [name for name in columns if name is not None]
        lines: dict[str, int] = {}  # id -> line
        comma = self.allows_commas(path)
        lists = dict.fromkeys(labels, self.separator) if self.separator else {}
        rows = rows_by_name(path, needed, comma, self.quoted, self.header, lists)
        for number, (line, row) in enumerate(rows, 1):
            identity = str(number)
            if self.id_column:
                identity = row[self.id_column].strip()
                identity = identity.lower() if self.lower_ids else identity
                check_id(identity, path, line, lines)
            target = None
            if labelled:
                cells = [row[name].strip() for name in labels]
                if any(cell in self.blank for cell in cells):
                    yield None
                    continue
                target = self.target(cells, f"{path}, line {line}")
            texts = [self.clean_text(row[name]) for name in self.text_columns]
            if labelled and self.skip_blank_texts and not all(texts):
                yield None
                continue
            group = row[group_column].strip() if group_column else ""
            yield Row(identity, texts, target, group)

    def target(self, cells: Sequence[str], where: str) -> Label:
        """Return the number or numbers of a row's labels; raise DataError for an invalid label."""
        found = []
        for name, cell in zip(self.label_columns, cells, strict=True):
            try:
                found.append(self.parse_label(cell))
            except ValueError as error:
                raise DataError(f"{where}: {name}: {label_fault(error, cell)}") from error
        return tuple(found) if self.indicators else found[0]

    def file(self, folder: Path, split: str) -> Path:
        """Return the file of a split, in the first place that has any file of the task."""
        every = [self.files] if self.other_files is None else [self.files, self.other_files]
        choices = [(folder / place, files) for files in every for place in self.places]
        having = [c for c in choices if any((c[0] / name).exists() for name in c[1].values())]
        place, files = (having or choices)[0]
        return place / files[split]

    def where(self, folder: Path, split: str) -> str:
        return str(self.file(folder, split))


def check_id(identity: str, path: Path, line: int, lines: dict[str, int]) -> None:
    """Raise DataError for an id that is already in `lines` or would break the prediction file."""
    if not identity:
        raise DataError(f"{path}, line {line}: expected an id, found a blank field")
    if not identity.isprintable() or " , " in identity:
        raise DataError(
            f"{path}, line {line}: expected an id without ' , ' and line breaks, found {identity!r}"
        )
    if identity in lines:
        raise DataError(
            f"{path}, line {line}: expected unique ids, "
            f"found {identity!r} again (first in line {lines[identity]})"
        )
    lines[identity] = line


def collect_examples(
    path: Path,
    rows: Iterable[Row | None],
    columns: int,
    target_type: type | None,
    wanted: np.ndarray | None = None,
) -> Examples:
    """Return the rows of a file as examples, all or those at the positions `wanted`.

    `columns` is the number of texts; `target_type` is None for a file without labels.
    """
    chosen = None if wanted is None else set(wanted.tolist())
    ids: list[str] = []
    texts: tuple[list[str], ...] = tuple([] for _ in range(columns))
    targets: list[Label | None] = []
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
        found = f"{blank} rows without label or text" if blank else "only a header line"
        raise DataError(f"{path}: expected at least one example, found {found}")
    return Examples(ids, texts, np.array(targets, target_type) if target_type else None, blank)


def innermost(source: Source) -> Source:
    """Return the source behind the wrappers that derive splits from it."""
    while (inner := getattr(source, "source", None)) is not None:
        source = inner
    return source


def files_of(source: Source) -> LabelledFiles:
    """Return the files behind a source."""
    found = innermost(source)
    assert isinstance(found, LabelledFiles), "expected a source of files"
    return found
