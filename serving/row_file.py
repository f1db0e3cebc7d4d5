"""The input of a prediction: a file with one or two texts per row, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.own_tasks import TEXTS
from tasks.tables import TABLES, rows_by_name, whole_rows
from tasks.text_files import DataError, Stamp, decoded, decoded_lines, stamp


class Row(tuple[str, ...]):
    """The one or two texts of a row, and all its `fields` with the names in `header`."""

    fields: Sequence[str]
    header: Sequence[str]

    def __new__(cls, texts: Iterable[str], fields: Sequence[str], header: Sequence[str]) -> Row:
        row = super().__new__(cls, texts)
        row.fields, row.header = fields, header
        return row

    @property
    def characters(self) -> int:
        """Number of characters of all fields."""
        return sum(map(len, self.fields))


@dataclass(frozen=True)
class RowFile:
    """Texts in `columns` of a file, or one text per line without columns.

    `file` is None for standard input. `index` is the column of row numbers in a GLUE test file.
    """

    file: str | None
    columns: tuple[str, ...] = ()
    index: str | None = None
    quoted: bool = True

    def rows(self) -> Iterator[Row]:
        """Yield the one or two texts of each row, with all fields of the row."""
        if self.file is None:
            for texts in standard_input():
                yield Row(texts, texts, TEXTS[: len(texts)])
        elif self.columns:
            yield from self.rows_of_table(Path(self.file))
        elif Path(self.file).suffix.lower() in TABLES:
            raise DataError(f"{self.file}: expected --column with the name of its text, found none")
        else:
            for _, line in decoded_lines(Path(self.file)):
                texts = (line.rstrip("\r\n"),)
                yield Row(texts, texts, TEXTS[:1])

    def rows_of_table(self, path: Path) -> Iterator[Row]:
        needed = [*self.columns, *([self.index] if self.index else [])]
        places: list[int] = []
        for header, fields in whole_rows(path, needed, self.quoted):
            places = places or [header.index(name) for name in self.columns]
            yield Row((fields[place] for place in places), fields, header)

    def indices(self) -> Iterator[str]:
        """Yield the index of each row of a GLUE test file; raise DataError if it is not unique."""
        assert self.index is not None, "indices need a column"
        known = set()
        assert self.file is not None, "only files have columns"
        for line, row in rows_by_name(Path(self.file), [self.index], quoted_tabs=self.quoted):
            index = row[self.index].strip()
            if not index.isdecimal() or index in known:
                raise DataError(
                    f"{self.file}, line {line}: {self.index}: expected a unique whole number, "
                    f"found {index!r}"
                )
            known.add(index)
            yield index

    def version(self) -> Stamp | None:
        """Return the `stamp` of the file; None for standard input."""
        try:
            return None if self.file is None else stamp(Path(self.file))
        except (OSError, ValueError):  # a wrong name is reported when it is read
            return None

    def check_unchanged(self, version: Stamp | None) -> None:
        """Raise DataError if the file changed: rows and indices are read separately."""
        if self.version() != version:
            raise DataError(f"{self.file}: expected the same file to the end, found it changed")


def standard_input() -> Iterator[tuple[str, ...]]:
    """Yield one text per line, or two with a tab between them."""
    if sys.stdin is None:
        raise DataError("standard input: expected one text per line, found it closed")
    for number, line in decoded(sys.stdin.buffer, "standard input"):
        texts = tuple(line.rstrip("\r\n").split("\t"))
        if len(texts) > 2:
            raise DataError(
                f"standard input, line {number}: expected one text, or two with a tab between "
                f"them, found {len(texts)}"
            )
        yield texts
