"""Sources of a task's examples: files of texts and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tasks.readers import Examples, Limit
from tasks.tables import rows_by_name
from tasks.text_files import DataError

Label = float | tuple[float, ...]  # a class, a number, or 0 or 1 for each of several labels
NO_AGREEMENT = "-"  # of annotators, in SNLI and similar data sets


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
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        path, labelled = self.file(folder, split), split != "test" or self.labelled_test
        labels: tuple[str, ...] = ()
        if labelled:
            labels = self.indicators or ((self.label_column,) if self.label_column else ())
        group = self.group_column if split == "train" else None
        columns = [name for name in (self.id_column, *self.text_columns, *labels, group) if name]
        comma = path.name in (self.other_files or {}).values() or self.comma
        lists = dict.fromkeys(labels, self.separator) if self.separator else {}
        rows = rows_by_name(path, columns, comma, self.quoted, self.header, lists)
        lines: dict[str, int] = {}  # id -> line
        ids: list[str] = []
        texts: tuple[list[str], ...] = tuple([] for _ in self.text_columns)
        targets: list[Label | None] = []
        groups: list[str] = []
        blank = 0
        for number, (line, row) in enumerate(rows, 1):
            try:
                identity = self.identity(row, line, lines) if self.id_column else str(number)
                cells = [row[name].strip() for name in labels]
                unlabelled = any(cell in self.blank for cell in cells)
                target = self.target(labels, cells) if labelled and not unlabelled else None
            except ValueError as error:
                raise DataError(f"{path}, line {line}: {error}") from error
            cleaned = [self.clean_text(row[name]) for name in self.text_columns]
            if unlabelled or (labelled and self.skip_blank_texts and not all(cleaned)):
                blank += 1
                continue
            ids.append(identity)
            targets.append(target)
            groups.append(row[group].strip() if group else "")
            for column, text in zip(texts, cleaned, strict=True):
                column.append(text)
        if not ids:
            found = f"found {blank} rows without label or text"
            raise DataError(f"{path}: expected at least one example, {found}")
        array: Any = np.array(targets, self.target_type) if labelled else None
        return Examples(ids, texts, array, blank, groups=groups if group else None).sample(limit)

    def identity(self, row: Mapping[str, str], line: int, lines: dict[str, int]) -> str:
        """Return the id of a row, and note its line.

        Raise ValueError for an id that was there, or that would break the prediction file.
        """
        assert self.id_column is not None
        found = row[self.id_column].strip()
        found = found.lower() if self.lower_ids else found
        if not found or not found.isprintable() or " , " in found:
            raise ValueError(f"expected an id without ' , ' and line breaks, found {found!r}")
        if (first := lines.setdefault(found, line)) != line:
            raise ValueError(f"expected unique ids, found {found!r} again (first in line {first})")
        return found

    def target(self, labels: Sequence[str], cells: Sequence[str]) -> Label:
        """Return the number or numbers of a row's labels; raise ValueError for an invalid label."""
        found = []
        for name, cell in zip(labels, cells, strict=True):
            try:
                found.append(self.parse_label(cell))
            except ValueError as error:
                raise ValueError(f"{name}: {error}, found {cell!r}") from error
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
