"""The reader of CSV, TSV, JSON and Parquet files, by the ending of their names."""

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
from typing import Any, NamedTuple

from common.errors import Notice, UserError, suggestion
from tasks.csv_files import Layout, Rows, csv_rows

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
    """A file in memory: its columns, and its rows with the numbers of their lines or, else, rows.

    The columns of JSON are the keys of all objects; a row may lack some.
    """

    path: Path
    columns: list[str]
    rows: Rows
    delimiter: str = ""

    def fields(
        self, needed: Sequence[str], lists: Sequence[str] = (), separator: str = ""
    ) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield (line number, fields of the `needed` columns as text) of each row.

        A field of the columns `lists` may be a list, which the separator joins.
        """
        self.check(needed)
        plain = [one for one in needed if separator != "," or one not in lists]
        numbers = [*filter(self.has_commas, plain)]
        for line, row in self.rows:
            try:
                found = {n: field(row, n, separator if n in lists else "") for n in needed}
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
                if not count and not (near := suggestion(name, self.columns)) and self.delimiter:
                    near = "; without a header line, add --table header=no for columns 1, 2, ..."
                found += "" if count else near
                raise DataError(f"{self.path}, line 1: expected a column {name!r}, found {found}")


def read_table(path: Path, layout: Layout = USUAL) -> Table:
    """Read a file; raise DataError with file and line.

    A notice names an unusual delimiter. JSON has one object per line, or an array of objects.
    """
    ending = path.suffix.lower()
    if ending == PARQUET:
        return read_parquet(path)
    content = read_text(path, layout.encoding)
    try:
        if ending in JSON:
            rows = json_rows(content)
            return Table(path, [*dict.fromkeys(key for _, row in rows for key in row)], rows)
        columns, rows, delimiter = csv_rows(content, layout, ending)
    except ValueError as error:
        raise DataError(f"{path}, {error}") from error
    if delimiter not in (layout.delimiter, "\t", ","):
        say(f"{path.absolute()}: the fields are separated by {delimiter}")
    return Table(path, columns, rows, delimiter)


def read_sentences(path: Path, column: str | None = None, layout: Layout = USUAL) -> list[str]:
    """Return the texts in a column of a table, or without a `column` all lines of a text file."""
    if column is not None:
        return [row[column] for _, row in read_table(path, layout).fields([column])]
    if path.suffix.lower() in TABLES:
        raise DataError(f"{path}: name the column of the texts with --text")
    return lines_of(read_text(path, layout.encoding))


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without line breaks."""
    return [line.rstrip("\r\n") for line in io.StringIO(text, newline="\n")]


def read_text(path: Path, encoding: str | None = None) -> str:
    """Return the content of a text file; raise DataError, with the line of a wrong byte."""
    try:
        return decoded(path.read_bytes(), str(path), encoding)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(content: bytes, name: str, encoding: str | None = None) -> str:
    """Return text without a byte-order mark; errors contain `name`."""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = encoding or ("utf-16" if marked else "utf-8")
    try:
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeError as error:
        before = content[: getattr(error, "start", 0)]
        found = f"expected {encoding.upper()} text, found byte 0x{content[len(before)]:02x}"
        cure = "save the file as UTF-8, or name its encoding: --table encoding=cp1252"
        line = before.count(b"\n") + 1
        raise DataError(f"{name}, line {line}: {found}; {cure}") from error


def json_rows(content: str) -> Rows:
    """Return the objects of a file, one per line or in an array; raise ValueError with the line."""
    array = content.lstrip().startswith("[")
    rows: Rows = []
    for line, text in enumerate([content] if array else lines_of(content), 1):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
            if "\\ud" in text or "\\uD" in text:  # half of a surrogate pair is no text
                found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            place, wrong = line + getattr(error, "lineno", 1) - 1, getattr(error, "msg", error)
            raise ValueError(f"line {place}: this is no valid JSON: {wrong}") from error
        rows += enumerate(found if array else [found], line)
    for line, row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"line {line}: expected a JSON object, found {type(row).__name__}")
    return rows


def read_parquet(path: Path) -> Table:
    """Read a Parquet file; classes have the names that `datasets` stored, '' for other numbers."""
    from pyarrow.parquet import ParquetFile

    try:
        table = ParquetFile(path).read()
        rows = [*enumerate(table.to_pylist(), 1)]
        stored = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        for name, feature in (stored.get("info", {}).get("features") or {}).items():
            names = dict(enumerate(feature.get("feature", feature).get("names") or ()))
            for _, row in rows if names else ():
                several = isinstance(row[name], list)
                found = [names.get(one, "") for one in (row[name] if several else [row[name]])]
                row[name] = found if several else found[0]
    except Exception as error:  # there are many, also for odd dates, bytes and metadata
        line = f"{path}: cannot be read as Parquet: {type(error).__name__}: {error}"
        raise DataError(line) from error
    return Table(path, table.column_names, rows)


def field(row: Mapping[str, Any], name: str, separator: str = "") -> str:
    """Return a value as text, a list only with a separator; raise ValueError for other types."""
    value: Any = row.get(name)
    several = separator and isinstance(value, list)
    parts = [to_text(one) for one in (value if several else [value])]
    for one in parts:
        if not isinstance(one, str):
            raise ValueError(f"expected text or a number in {name!r}, found {value!r:.60}")
        if several and (not one or separator in one):
            raise ValueError(f"expected labels without {separator!r}, not blank, found {one!r}")
    return separator.join(parts)


def to_text(value: Any) -> Any:
    """Convert numbers, dates and missing values to text; whole numbers have no point."""
    if isinstance(value, str):
        return value
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or (
        isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    ):
        value = int(value)
    return str(value) if isinstance(value, int | float | Decimal | date | time) else value


def shown(value: Any) -> str:
    """Return a value of any type as text: JSON, but for texts, missing values and dates."""
    if isinstance(value, bool | int | float | list | dict) and value == value:
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(to_text(value))
