"""What is predicted: a file of texts, one or two per row, or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.tables import READERS, rows_by_name
from tasks.text_files import DataError, decoded, decoded_lines


@dataclass(frozen=True)
class RowFile:
    """Texts of a file, in `columns`, or one per line without any; of standard input for None.

    `index` is the column of a number for each row, in a test file of GLUE.
    """

    file: str | None
    columns: tuple[str, ...] = ()
    index: str | None = None
    quoted: bool = True

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The texts, one or two per row."""
        if self.file is None:
            yield from standard_input()
        elif self.columns:
            needed = [*self.columns, *([self.index] if self.index else [])]
            for _, row in self.named(needed):
                yield tuple(row[name] for name in self.columns)
        elif Path(self.file).suffix.lower() in READERS:
            raise DataError(f"{self.file}: expected --column with the name of its text, found none")
        else:
            for _, line in decoded_lines(Path(self.file)):
                yield (line.rstrip("\r\n"),)

    def labels(self, column: str) -> Iterator[tuple[str, str]]:
        """Each row's place and label."""
        for line, row in self.named([column]):
            yield f"{self.file}, line {line}: {column}", row[column]

    def indices(self) -> Iterator[str]:
        """The number of each row, as GLUE has it."""
        assert self.index is not None, "only asked for with a column"
        known = set()
        for line, row in self.named([self.index]):
            index = row[self.index].strip()
            if not index.isdecimal() or index in known:
                raise DataError(
                    f"{self.file}, line {line}: {self.index}: expected a whole number of its own, "
                    f"found {index!r}"
                )
            known.add(index)
            yield index

    def named(self, names: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
        """The columns of these names, each row after its line."""
        assert self.file is not None, "columns have names in files only"
        comma = Path(self.file).suffix.lower() == ".csv"
        return rows_by_name(Path(self.file), list(names), comma, quoted_tabs=self.quoted)

    def version(self) -> tuple[tuple[int, int], ...]:
        """Size and time of the file, or of each file of a folder; nothing of standard input."""
        if self.file is None:
            return ()
        source = Path(self.file)
        try:
            files = sorted(source.rglob("*")) if source.is_dir() else [source]
            found = [file.stat() for file in files]
        except OSError:  # it is not there: whoever reads it reports that
            return ()
        return tuple((one.st_size, one.st_mtime_ns) for one in found)

    def check_unchanged(self, version: tuple[tuple[int, int], ...]) -> None:
        """DataError where the file is not what it was: rows, labels and indices are read apart."""
        if self.version() != version:
            raise DataError(f"{self.file}: expected the same file to the end, found it changed")


def standard_input() -> Iterator[tuple[str, ...]]:
    """A text per line, or two with a tab between them."""
    if sys.stdin is None:
        raise DataError("standard input: expected a text a line, found it closed")
    for number, line in decoded(sys.stdin.buffer, "standard input"):
        texts = tuple(line.rstrip("\r\n").split("\t"))
        if len(texts) > 2:
            raise DataError(
                f"standard input, line {number}: expected one text, or two with a tab between "
                f"them, found {len(texts)}"
            )
        yield texts
