"""The reader of CSV, TSV, JSON and Parquet files, by the ending of their names."""

from __future__ import annotations

import codecs
import io
import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from common.errors import Notice, UserError
from common.files import check_regular
from common.text import all_names
from tasks.csv_files import Layout, Rows, parse

JSON, PARQUET = (".json", ".jsonl"), ".parquet"
USUAL = Layout()
TABLES = (".csv", ".tsv", *JSON, PARQUET)
SPLITS = {  # names of files and in columns
    **{"train": "train", "dev": "dev", "validation": "dev", "valid": "dev", "val": "dev"},
    "test": "test",
}
DECIMAL = re.compile(r"\s*([+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?)?\s*")  # as in 1.234,5; or blank


class DataError(UserError):
    """An invalid data file."""


@cache
def say(line: str) -> None:
    """Say once what was recognised in a file, which is read for each split and task."""
    warnings.warn(Notice(line), stacklevel=2)


class Table(NamedTuple):
    """A file in memory: its columns, and its rows with their line numbers, or those of Parquet.

    The columns of JSON are the keys of all objects; a row may lack some.
    """

    path: Path
    columns: list[str]
    rows: Rows
    delimiter: str = ""

    def fields(
        self, needed: Sequence[str], lists: Mapping[str, str] | None = None
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield (line number, fields of the `needed` columns as text) of each row.

        A field of the columns `lists` may be a list, which is joined by the column's separator.
        Raise DataError for a column that is not there or there twice, and for other values.
        """
        self.check(needed)
        separators = lists or {}
        numbers = {one for one in needed if separators.get(one) != "," and self.has_commas(one)}
        for line, row in self.rows:
            try:
                found = {name: field(row, name, separators.get(name)) for name in needed}
            except ValueError as error:
                raise DataError(f"{self.path}, line {line}: {error}") from error
            for name in numbers:
                found[name] = found[name].replace(".", "").replace(",", ".")
            yield line, found

    def has_commas(self, name: str) -> bool:
        """Return whether a column has numbers with decimal commas, as German programs write."""
        cells = [row[name] for _, row in self.rows] if self.delimiter == ";" else []
        found = any("," in cell for cell in cells) and all(map(DECIMAL.fullmatch, cells))
        if found:
            say(f"{self.path.absolute()}: the numbers of column {name!r} have decimal commas")
        return found

    def check(self, needed: Sequence[str]) -> None:
        for name in needed:
            if (count := self.columns.count(name)) != 1:
                found = "it twice" if count else ", ".join(filter(None, self.columns)) or "none"
                if self.delimiter and not count:
                    found += "; --table header=no names columns 1, 2, ..."
                raise DataError(f"{self.path}, line 1: expected a column {name!r}, found {found}")


def read_table(path: Path, layout: Layout = USUAL) -> Table:
    """Read a file.

    The delimiter of text is recognised, and said if it is unusual: commas in a file that ends in
    .csv, or has one in its header and does not end in .tsv; tabs in others, and if the header has
    one. Files that end in .json or .jsonl have one object per line, or an array of objects. Raise
    DataError with file and line.
    """
    ending = path.suffix.lower()
    if ending == PARQUET:
        return read_parquet(path)
    content = "".join(text for _, text in lines_of(path, layout.encoding))
    if ending in JSON:
        return read_json_rows(path, content)
    try:
        columns, rows, delimiter = parse(content, layout, ending)
    except ValueError as error:
        raise DataError(f"{path}, {error}") from error
    if delimiter not in (layout.delimiter, "\t", ","):
        say(f"{path.absolute()}: the fields are separated by {delimiter}")
    return Table(path, columns, rows, delimiter)


def read_sentences(path: Path, column: str | None = None, layout: Layout = USUAL) -> Iterator[str]:
    """Return the texts in a column of a table, or without a `column` the lines of a text file.

    A text file is not held in memory. Blank lines are sentences too.
    """
    if column is not None:
        return (row[column] for _, row in read_table(path, layout).fields([column]))
    if path.suffix.lower() in TABLES:
        expected = "expected the name of a column (--column, or --text-column with --text)"
        raise DataError(f"{path}: {expected}, found none")
    return (text.rstrip("\r\n") for _, text in lines_of(path, layout.encoding))


def lines_of(path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file with their numbers, from 1."""
    check_regular(path, DataError)  # a pipe cannot be read twice
    try:
        with path.open("rb") as file:
            marked = file.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            yield from decoded(file, str(path), encoding or ("utf-16" if marked else "utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(file: BinaryIO, name: str, encoding: str) -> Iterator[tuple[int, str]]:
    """Yield lines of text without a byte-order mark; errors contain `name`."""
    text, number = io.TextIOWrapper(file, encoding, "surrogateescape", newline="\n"), 0
    try:
        for number, line in enumerate(text, 1):
            if not line.isascii() and (wrong := re.search("[\ud800-\udfff]", line)):
                number -= 1
                raise UnicodeError(f"byte 0x{ord(wrong[0]) & 255:02x}")
            yield number, line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeError as error:
        found = f"expected {encoding.upper()} text, found {error}"
        cure = "save the file as UTF-8, or name its encoding: --table encoding=cp1252"
        raise DataError(f"{name}, line {number + 1}: {found}; {cure}") from error
    finally:
        text.detach()


def read_json_rows(path: Path, content: str) -> Table:
    """Read objects, one per line or in an array."""
    content, array = content.rstrip(), content.lstrip().startswith("[")
    read, gap = json.JSONDecoder().raw_decode, re.compile(r"[\s,]*")
    halves = "\\ud" in content or "\\uD" in content
    rows: Rows = []
    line, before, end = 1, 0, content.index("[") + 1 if array else 0
    while (found := gap.match(content, end)) and (begin := found.end()) < len(content) - array:
        line, before = line + content.count("\n", before, begin), begin
        try:
            row, end = read(content, begin)
            if halves:  # half of a surrogate pair is no text
                row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            wrong = getattr(error, "msg", error)
            raise DataError(f"{path}, line {line}: expected JSON, found: {wrong}") from error
        if not isinstance(row, dict):
            expected = f"expected a JSON object, found {type(row).__name__}"
            raise DataError(f"{path}, line {line}: {expected}")
        rows.append((line, row))
    if array and content[-1] != "]":
        raise DataError(f"{path}, line {line}: expected ] at the end of the array")
    return Table(path, [*dict.fromkeys(key for _, row in rows for key in row)], rows)


def read_parquet(path: Path) -> Table:
    """Read a Parquet file; classes have the names that `datasets` stored, '' for other numbers."""
    from pyarrow.parquet import ParquetFile

    check_regular(path, DataError)
    try:
        table = ParquetFile(path).read()
        rows = [*enumerate(table.to_pylist(), 1)]
        stored = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        for name, feature in (stored.get("info", {}).get("features") or {}).items():
            one = feature.get("feature", feature)
            names = dict(enumerate(one["names"])) if one.get("_type") == "ClassLabel" else {}
            for _, row in rows if names else ():
                several = isinstance(row[name], list)
                found = [names.get(one, "") for one in (row[name] if several else [row[name]])]
                row[name] = found if several else found[0]
    except Exception as error:  # there are many, also for odd dates, bytes and metadata
        line = f"{path}: cannot be read as Parquet: {type(error).__name__}: {error}"
        raise DataError(line) from error
    return Table(path, table.column_names, rows)


def field(row: Mapping[str, Any], name: str, separator: str | None = None) -> str:
    """Return a value as text, a list only with a separator; raise ValueError for other types."""
    if isinstance(value := row.get(name), str):
        return value
    if separator and isinstance(value, list):
        parts = [to_text(one) for one in value]
        for one in parts:
            if not isinstance(one, str) or not one or separator in one:
                raise ValueError(f"expected labels without {separator!r}, not blank, found {one!r}")
        return separator.join(parts)
    text = to_text(value)
    if not isinstance(text, str):
        raise ValueError(f"expected text or a number in {name!r}, found {value!r:.60}")
    return text


def to_text(value: Any) -> Any:
    """Convert numbers, dates and missing values to text; return other values as they are.

    Whole numbers have no point: a column of classes may have 1 in one file and 1.0 in another.
    """
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    ):
        value = int(value)
    return str(value) if isinstance(value, int | float | Decimal | date | time) else value


def split_of(cell: str) -> str:
    """Return the split that a cell names; raise ValueError for another word."""
    if (name := cell.strip().lower()) not in SPLITS:
        raise ValueError(f"expected {all_names([*SPLITS], 'or')}, found {cell!r}")
    return SPLITS[name]


def shown(value: Any) -> str:
    """Return a value of any type as text: JSON, but for texts, missing values and dates."""
    if isinstance(value, bool | int | float | list | dict) and value == value:
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(to_text(value))
