"""Sources of a task's examples: files of texts and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tasks.readers import Examples, Label, Limit, Parser
from tasks.tables import DataError, read_table


class Source(Protocol):
    """A source of a task's examples."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Return the available splits of train, dev and test."""
        ...

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        """Return the examples of a split; raise DataError with file and line.

        `limit` counts all examples, or those of each task if the texts come from several tasks.
        """
        ...

    def where(self, folder: Path, split: str) -> str:
        """Return the file or files of a split."""
        ...


@dataclass(frozen=True)
class LabelledFiles:
    """One file per split, with one or two texts and a label in each row; `test` may have no labels.

    `files` are names by split: the first of those whose dev file is in the data folder. Without an
    `id_column` the row number, from 1, is the id. `header` names the columns
    of files without a header line.

    `parse_label` reads a label: whole numbers are classes; rows without a label are skipped. With
    several `label_columns`, each has one of several labels. With
    a `separator`, a label in JSONL or Parquet may also be a list. `joined` makes one text of those
    of a row.
    """

    files: tuple[Mapping[str, str], ...]
    text_columns: tuple[str, ...]
    label_columns: tuple[str, ...]
    parse_label: Parser
    clean_text: Callable[[str], str]
    id_column: str | None = "id"
    quoted: bool = True
    header: tuple[str, ...] | None = None
    labelled_test: bool = False
    lower_ids: bool = True
    skip_blank_texts: bool = False  # like blank labels, in a file with labels
    separator: str | None = None
    joined: bool = False

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.files[0])

    def read(self, folder: Path, split: str, limit: Limit = None) -> Examples:
        path, labelled = Path(self.where(folder, split)), split != "test" or self.labelled_test
        labels = self.label_columns if labelled else ()
        columns = [name for name in (self.id_column, *self.text_columns, *labels) if name]
        lists = dict.fromkeys(labels, self.separator) if self.separator else {}
        rows = read_table(path, self.quoted, self.header).fields(columns, lists)
        lines: dict[str, int] = {}  # id -> line
        ids: list[str] = []
        texts: list[list[str]] = []  # those of an example
        targets: list[Label | None] = []
        blank = 0
        for number, (line, row) in enumerate(rows, 1):
            try:
                identity = self.identity(row, line, lines) if self.id_column else str(number)
                target = self.target({name: row[name].strip() for name in labels})
            except ValueError as error:
                raise DataError(f"{path}, line {line}: {error}") from error
            cleaned = [self.clean_text(row[name]) for name in self.text_columns]
            cleaned = [" ".join(filter(None, cleaned))] if self.joined else cleaned
            if labelled and (target is None or (self.skip_blank_texts and not all(cleaned))):
                blank += 1
                continue
            ids.append(identity)
            targets.append(target)
            texts.append(cleaned)
        if not ids:
            none = f"found {blank} rows without label or text"
            raise DataError(f"{path}: expected at least one example, {none}")
        array: Any = None
        if labelled:
            array = np.array(targets, np.int64 if isinstance(targets[0], int) else np.float32)
        by_column = tuple(map(list, zip(*texts, strict=True)))
        return Examples(ids, by_column, array, blank).sample(limit)

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

    def target(self, cells: Mapping[str, str]) -> Label | None:
        """Return the label in the cells of a row, None if one has none; raise ValueError."""
        found = []
        for name, cell in cells.items():
            try:
                found.append(self.parse_label(cell))
            except ValueError as error:
                raise ValueError(f"{name}: {error}, found {cell!r}") from error
        if None in found or not found:
            return None
        return tuple(found) if len(found) > 1 else found[0]

    def where(self, folder: Path, split: str) -> str:
        here = (one for one in self.files if (folder / one["dev"]).exists())
        return str(folder / next(here, self.files[0])[split])


def files_of(source: Any) -> Any:
    """Return the source of files behind one that derives its splits from theirs."""
    while hasattr(source, "source"):
        source = source.source
    return source
