"""The reader of CSV, TSV, JSON Lines and Parquet files, by the ending of their names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.files import check_regular

JSON_LINES, PARQUET = (".json", ".jsonl"), ".parquet"
TABLES = (".csv", ".tsv", *JSON_LINES, PARQUET)
Lines = Iterator[tuple[int, str]]  # line number from 1, text with the line break
Rows = Iterator[tuple[int, dict[str, Any]]]  # line number from 1, values by column

# The csv module's limit of 131,072 characters is too small for long texts. Without a limit, an open
# quote would include the rest of a file of any size.
csv.field_size_limit(1 << 24)


class DataError(UserError):
    """An invalid data file."""


def read_sentences(path: Path, column: str | None = None) -> Iterator[str]:
    """Return the texts in a column of a table, or without a `column` the lines of a text file.

    The file is not held in memory. Blank lines are sentences too.
    """
    if column is not None:
        return (row[column] for _, row in rows_by_name(path, [column]))
    if path.suffix.lower() in TABLES:
        expected = "expected the name of a column (--column, or --text-column with --text)"
        raise DataError(f"{path}: {expected}, found none")
    return (text.rstrip("\r\n") for _, text in decoded_lines(path))


def rows_by_name(
    path: Path,
    needed: Sequence[str],
    quoted_tabs: bool = True,
    names: Sequence[str] | None = None,
    lists: Mapping[str, str] | None = None,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, fields of the `needed` columns as text) of each row.

    Commas separate the fields of a file that ends in .csv, or has one in its header and does not
    end in .tsv; tabs separate those of others, and of a file with a tab in its header. Fields may
    be quoted, between tabs only with `quoted_tabs`. `names` are the columns of a file without a
    header line. Files that end in .json or .jsonl have one object per line; Parquet files have row
    numbers instead of line numbers. In both, fields of the columns `lists` may be lists, which are
    joined by the separator of their column. Raise DataError with file and line for a bad row.
    """
    lists = lists or {}
    header, rows = open_table(path, quoted_tabs, names)
    check_columns(path, header, needed)
    for line, row in rows:
        try:
            yield line, {name: field(row, name, lists.get(name)) for name in needed}
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}") from error


def whole_rows(
    path: Path, needed: Sequence[str], quoted_tabs: bool = True
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the columns and all fields of each row; those of `needed` columns as `rows_by_name`.

    Other fields may have any type: lists and the like are written as JSON. The columns of JSON
    Lines are the keys of the first object; a missing key is an empty field.
    """
    header, rows = open_table(path, quoted_tabs)
    check_columns(path, header, [*needed, *header])
    for line, row in rows:
        try:
            yield header, [field(row, n) if n in needed else shown(row.get(n)) for n in header]
        except ValueError as error:
            raise DataError(f"{path}, line {line}: {error}") from error


def columns_of(path: Path, quoted_tabs: bool = True) -> list[str]:
    """Return the names of a file's columns; for JSON Lines, the keys of the first object."""
    return open_table(path, quoted_tabs)[0]


def holds_lists(path: Path, column: str) -> bool:
    """Return whether the first value of a column that is not null is a list."""
    values = (row.get(column) for _, row in open_table(path)[1])
    return isinstance(next((value for value in values if value is not None), None), list)


def open_table(
    path: Path, quoted_tabs: bool = True, names: Sequence[str] | None = None
) -> tuple[list[str], Rows]:
    """Return the columns of a file of any format, and its rows; arguments as for `rows_by_name`."""
    if path.suffix.lower() == PARQUET:
        return open_parquet(path)
    if path.suffix.lower() not in JSON_LINES:
        return open_csv(path, quoted_tabs, names)
    rows = json_rows(path)
    first = next(rows, None)
    return ([], rows) if first is None else ([*first[1]], chain([first], rows))


def open_csv(path: Path, quoted_tabs: bool, names: Sequence[str] | None) -> tuple[list[str], Rows]:
    lines = csv_lines(path)
    first = next(lines, "")
    ending, header_line = path.suffix.lower(), "" if names else first
    comma = ending == ".csv" or (ending != ".tsv" and "," in header_line)
    comma = comma and "\t" not in header_line
    reader = csv.reader(
        chain([first], lines),
        delimiter="," if comma else "\t",
        quoting=csv.QUOTE_MINIMAL if comma or quoted_tabs else csv.QUOTE_NONE,
        strict=True,
    )
    kind = "comma-separated" if comma else "tab-separated"

    def next_fields() -> tuple[int, list[str]] | None:
        while True:
            begin = reader.line_num + 1
            try:
                if fields := next(reader):  # a blank line is no row
                    return begin, fields
            except StopIteration:
                return None
            except csv.Error as error:
                line = f"expected {kind} fields, found: {error}"
                raise DataError(f"{path}, line {begin}: {line}") from error

    def rows() -> Rows:
        while found := next_fields():
            line, fields = found
            if len(fields) != len(header):
                expected = f"expected {len(header)} {kind} fields, found {len(fields)}"
                raise DataError(f"{path}, line {line}: {expected}")
            yield line, dict(zip(header, fields, strict=True))

    header = list(names or (next_fields() or (1, []))[1])
    return header, rows()


def decoded_lines(path: Path) -> Lines:
    """Yield the lines of a UTF-8 file, with or without a byte-order mark."""
    check_regular(path, DataError)  # a pipe cannot be read twice
    try:
        with path.open("rb") as file:
            yield from decoded(file, str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def decoded(lines: Iterable[bytes], name: str) -> Lines:
    """Yield lines of UTF-8 text, with or without a byte-order mark; errors contain `name`."""
    for number, line in enumerate(lines, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            found = f"found byte 0x{line[error.start]:02x}; save the file as UTF-8"
            raise DataError(f"{name}, line {number}: expected UTF-8 text, {found}") from error


def csv_lines(path: Path) -> Iterator[str]:
    """Yield lines as the csv module expects them, ended also by a lone carriage return."""
    for _, text in decoded_lines(path):
        yield from io.StringIO(text, newline="") if "\r" in text[:-2] else [text]


def json_rows(path: Path) -> Rows:
    for line, text in decoded_lines(path):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
            if "\\ud" in text.lower():  # half of a surrogate pair is no text
                row = json.loads(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {line}: expected JSON, found: {error}") from error
        if not isinstance(row, dict):
            found = f"expected a JSON object in each line, found {type(row).__name__}"
            raise DataError(f"{path}, line {line}: {found}")
        yield line, row


def open_parquet(path: Path) -> tuple[list[str], Rows]:
    from datasets import Dataset

    check_regular(path, DataError)
    try:
        table = Dataset.from_parquet(str(path), streaming=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    classes = {
        name: names
        for name, one in table.features.items()
        if (names := getattr(getattr(one, "feature", one), "names", None))
    }

    def rows() -> Rows:
        try:
            for number, row in enumerate(table, 1):
                yield number, row | {n: class_name(row[n], names) for n, names in classes.items()}
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: cannot be read: {error}") from error

    return list(table.features), rows()


def class_name(value: Any, names: Sequence[str]) -> Any:
    """Return the name of a class by its number, '' for another number; also for lists of them."""
    if isinstance(value, list):
        return [class_name(one, names) for one in value]
    return names[value] if value in range(len(names)) else ""


def check_columns(path: Path, header: Sequence[str], needed: Sequence[str]) -> None:
    """Raise DataError if a header lacks a needed column, or has it twice."""
    for name in needed:
        if header.count(name) != 1:
            found = "it twice" if name in header else ", ".join(filter(None, header)) or "none"
            raise DataError(f"{path}, line 1: expected a column {name!r}, found {found}")


def field(row: Mapping[str, Any], name: str, separator: str | None = None) -> str:
    """Return a value as text, a list only with a separator; raise ValueError for other types."""
    if name not in row:
        raise ValueError(f"expected a key {name!r}, found {', '.join(row)}")
    if isinstance(value := row[name], str):
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


def shown(value: Any) -> str:
    """Return a value of any type as text: JSON, but for texts, missing values and dates."""
    if isinstance(value, bool | int | float | list | dict) and value == value:
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(to_text(value))
